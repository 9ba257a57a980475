import java.sql.*;
import java.util.*;
/** Clients that insert rows into an HSQLDB server, each by its own connection: prints inserts a second. */
public class Load {
    public static void main(String[] a) throws Exception {
        int clients = Integer.parseInt(a[1]), rounds = Integer.parseInt(a[2]);
        try (Connection c = DriverManager.getConnection(a[0], "SA", "")) {
            c.createStatement().execute("SET FILES WRITE DELAY FALSE");
            c.createStatement().execute("SET DATABASE TRANSACTION CONTROL MVCC");
            for (int n = 0; n < clients; n++)
                c.createStatement().execute("CREATE TABLE t" + n + " (n INT PRIMARY KEY, what VARCHAR(60))");
        }
        long[] began = { 0 };
        List<Thread> all = new ArrayList<>();
        java.util.concurrent.CyclicBarrier together = new java.util.concurrent.CyclicBarrier(clients, () -> began[0] = System.nanoTime());
        for (int n = 0; n < clients; n++) {
            int table = n;
            Thread t = new Thread(() -> {
                try (Connection c = DriverManager.getConnection(a[0], "SA", "");
                     PreparedStatement p = c.prepareStatement("INSERT INTO t" + table + " VALUES (?, ?)")) {
                    together.await();
                    for (int i = 0; i < rounds; i++) { p.setInt(1, i); p.setString(2, "row " + i); p.executeUpdate(); }
                } catch (Exception e) { throw new RuntimeException(e); }
            });
            all.add(t); t.start();
        }
        for (Thread t : all) t.join();
        System.out.printf("%.0f%n", clients * rounds / ((System.nanoTime() - began[0]) / 1e9));
    }
}

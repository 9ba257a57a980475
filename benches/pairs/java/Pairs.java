import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.encoder.PatternLayoutEncoder;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.FileAppender;
import com.google.common.util.concurrent.Striped;
import com.sun.net.httpserver.HttpServer;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Executors;
import java.util.zip.GZIPOutputStream;
import org.apache.catalina.startup.Tomcat;
import org.apache.commons.dbcp2.BasicDataSource;

/** Held-up programs and their mended twins around Java libraries: `Pairs NAME VARIANT`, a fixed amount of work. */
public class Pairs {
    interface Work {
        void of(int i) throws Exception;
    }

    static void each(int threads, Work work) throws Exception {
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            int me = i;
            all[i] = new Thread(() -> {
                try {
                    work.of(me);
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            }, "worker-" + i);
            all[i].start();
        }
        for (Thread thread : all) thread.join();
    }

    static long spin(int rounds) {
        long x = rounds | 1;
        for (int i = 0; i < rounds * 100; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }

    static volatile int sink;

    static int hash(int rounds) {
        try {
            MessageDigest sha = MessageDigest.getInstance("SHA-256");
            byte[] bytes = new byte[64];
            for (int i = 0; i < rounds; i++) System.arraycopy(sha.digest(bytes), 0, bytes, 0, 32);
            sink += bytes[0];
            return bytes[0];
        } catch (NoSuchAlgorithmException e) {
            throw new RuntimeException(e);
        }
    }

    /** One row that all update, in transactions that compute, or a row each. */
    static void h2(String how) throws Exception {
        String url = "jdbc:h2:mem:pairs;DB_CLOSE_DELAY=-1;LOCK_TIMEOUT=60000";
        try (Connection c = DriverManager.getConnection(url)) {
            c.createStatement().execute("create table t(id int primary key, v bigint)");
            for (int i = 0; i < 4; i++) c.createStatement().execute("insert into t values(" + i + ", 0)");
        }
        each(4, i -> {
            try (Connection c = DriverManager.getConnection(url)) {
                c.setAutoCommit(false);
                var update = c.prepareStatement("update t set v = v + 1 where id = ?");
                for (int n = 0; n < 400; n++) {
                    update.setInt(1, how.equals("one") ? 0 : i);
                    update.executeUpdate();
                    spin(4000);
                    c.commit();
                }
            }
        });
    }

    /** Connections that are held for 2 ms of somebody else's time. */
    static void hikari(String how) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:pool");
        config.setMaximumPoolSize(Integer.parseInt(how));
        try (HikariDataSource pool = new HikariDataSource(config)) {
            each(4, i -> {
                for (int n = 0; n < 150; n++) {
                    try (Connection c = pool.getConnection()) {
                        Thread.sleep(2);
                    }
                    spin(500);
                }
            });
        }
    }

    /** One file that all log to, or a file each. */
    static void logback(String how) throws Exception {
        LoggerContext context = new LoggerContext();
        int files = how.equals("one") ? 1 : 4;
        Logger[] logs = new Logger[files];
        for (int i = 0; i < files; i++) {
            PatternLayoutEncoder encoder = new PatternLayoutEncoder();
            encoder.setContext(context);
            encoder.setPattern("%d [%thread] %-5level %logger{36} - %msg%n");
            encoder.start();
            FileAppender<ILoggingEvent> file = new FileAppender<>();
            file.setContext(context);
            file.setFile("logback" + i + ".log");
            file.setAppend(false);
            file.setEncoder(encoder);
            file.start();
            logs[i] = context.getLogger("log" + i);
            logs[i].addAppender(file);
            logs[i].setAdditive(false);
        }
        each(4, i -> {
            for (int n = 0; n < 60_000; n++) logs[i % files].info("request {} of {} took {} us", n, i, n * 31 % 977);
        });
    }

    /** A service whose executor has one thread, or two. */
    static void jdkhttp(String how) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setExecutor(Executors.newFixedThreadPool(Integer.parseInt(how)));
        byte[] page = new byte[60_000];
        for (int i = 0; i < page.length; i++) page[i] = (byte) (spin(1 + i % 7) >>> (i % 13));
        server.createContext("/", exchange -> {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            try (GZIPOutputStream gzip = new GZIPOutputStream(out)) {
                gzip.write(page);
            }
            exchange.sendResponseHeaders(200, out.size());
            exchange.getResponseBody().write(out.toByteArray());
            exchange.close();
        });
        server.start();
        URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/");
        each(3, i -> {
            HttpClient client = HttpClient.newHttpClient();
            for (int n = 0; n < 60; n++) {
                client.send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofByteArray());
            }
        });
        System.exit(0);
    }

    /** Two producers and one consumer, or two. */
    static void queue(String how) throws Exception {
        int consumers = Integer.parseInt(how);
        var queue = new ArrayBlockingQueue<Integer>(32);
        each(2 + consumers, i -> {
            if (i < 2) {
                for (int n = 0; n < 6000; n++) {
                    spin(20);
                    queue.put(n);
                }
            } else {
                for (int n = 0; n < 12_000 / consumers; n++) {
                    queue.take();
                    spin(600);
                }
            }
        });
    }

    /** A server with so many threads, which sleep for 2 ms in each request, and four clients. */
    static void tomcat(String how) throws Exception {
        Tomcat server = new Tomcat();
        server.setBaseDir("tomcat");
        server.setPort(8311);
        var connector = server.getConnector();
        connector.setProperty("maxThreads", how);
        connector.setProperty("minSpareThreads", how);
        connector.setProperty("address", "127.0.0.1");
        var context = server.addContext("", null);
        server.addServlet("", "page", new HttpServlet() {
            @Override
            protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
                try {
                    Thread.sleep(2);
                } catch (InterruptedException e) {
                    throw new IOException(e);
                }
                response.getWriter().println(hash(600));
            }
        });
        context.addServletMappingDecoded("/", "page");
        server.start();
        each(4, i -> {
            for (int n = 0; n < 220; n++) {
                try (var page = new URL("http://127.0.0.1:8311/").openStream()) {
                    page.readAllBytes();
                }
            }
        });
        System.exit(0);
    }

    /** A pool of so many connections, which are held for 2 ms of somebody else's time and some computing. */
    static void dbcp(String how) throws Exception {
        BasicDataSource pool = new BasicDataSource();
        pool.setUrl("jdbc:hsqldb:mem:m");
        pool.setUsername("SA");
        pool.setPassword("");
        pool.setMaxTotal(Integer.parseInt(how));
        pool.setMaxIdle(8);
        each(4, i -> {
            for (int n = 0; n < 300; n++) {
                try (var c = pool.getConnection(); var s = c.createStatement(); var r = s.executeQuery("VALUES (1)")) {
                    r.next();
                    Thread.sleep(2);
                    hash(300);
                }
                hash(600);
            }
        });
    }

    /** Threads that compute under one stripe, or under a stripe of 64. */
    static void guava(String how) throws Exception {
        int stripes = how.equals("one") ? 1 : 64;
        var locks = Striped.lock(stripes);
        each(4, i -> {
            for (int n = 0; n < 190; n++) {
                var lock = locks.getAt(stripes == 1 ? 0 : i);
                lock.lock();
                try {
                    hash(1800);
                } finally {
                    lock.unlock();
                }
                hash(200);
            }
        });
    }

    public static void main(String[] words) throws Exception {
        switch (words[0]) {
            case "h2" -> h2(words[1]);
            case "hikari" -> hikari(words[1]);
            case "logback" -> logback(words[1]);
            case "jdkhttp" -> jdkhttp(words[1]);
            case "queue" -> queue(words[1]);
            case "tomcat" -> tomcat(words[1]);
            case "dbcp" -> dbcp(words[1]);
            case "guava" -> guava(words[1]);
        }
    }
}

//! Held-up programs and their mended twins around crates: `pairs NAME VARIANT`. Each does a fixed amount of work.
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::Duration;

fn main() {
    let mut words = std::env::args().skip(1);
    let (name, how) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match name.as_str() {
        "redb" => redb_writers(&how),
        "parking_lot" => parking_lot_map(&how),
        "flume" => flume_consumers(&how),
        "r2d2" => r2d2_pool(&how),
        "par_bridge" => rayon_par_bridge(&how),
        "rayon_lock" => rayon_rwlock(&how),
        "tokio_mutex" => tokio_mutex(&how),
        "tokio_blocking" => tokio_blocking(&how),
        "tokio_channel" => tokio_channel(&how),
        "moka" => moka_cache(&how),
        "crossbeam" => crossbeam_stages(&how),
        "lru" => lru_cache(&how),
        "fdlock" => fd_lock_files(&how),
        "fdlock_file" => fd_lock_file(&how),
        _ => panic!("no such program"),
    }
}

/// Some microseconds of work that is not optimised away.
fn spin(rounds: u32, seed: u64) -> u64 {
    let mut x = seed | 1;
    for _ in 0..rounds * 100 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    std::hint::black_box(x)
}

fn hash(rounds: u32) -> u8 {
    use sha2::{Digest, Sha256};
    let mut bytes = [0u8; 32];
    for _ in 0..rounds {
        bytes = Sha256::digest(bytes).into();
    }
    bytes[0]
}

fn each(threads: u64, work: impl Fn(u64) + Send + Sync) {
    thread::scope(|scope| {
        for i in 0..threads {
            let work = &work;
            scope.spawn(move || work(i));
        }
    });
}

/// One writer at a time in a database of redb.
fn redb_writers(how: &str) {
    use redb::{Database, Durability, TableDefinition};
    const TABLE: TableDefinition<u64, u64> = TableDefinition::new("t");
    let files: Vec<Arc<Database>> = (0..4)
        .map(|i| {
            let path = format!("redb{i}.db");
            let _ = std::fs::remove_file(&path);
            Arc::new(Database::create(path).unwrap())
        })
        .collect();
    each(4, |i| {
        let db = &files[if how == "one" { 0 } else { i as usize }];
        for n in 0..250u64 {
            let mut write = db.begin_write().unwrap();
            write.set_durability(Durability::None);
            {
                let mut table = write.open_table(TABLE).unwrap();
                for k in 0..100 {
                    table.insert(i << 32 | spin(1, n * 100 + k) % 5000, n).unwrap();
                }
            }
            write.commit().unwrap();
        }
    });
}

fn parking_lot_map(how: &str) {
    use std::collections::HashMap;
    let one = parking_lot::Mutex::new(HashMap::<u64, u64>::new());
    let many = dashmap::DashMap::<u64, u64>::new();
    each(4, |i| {
        for n in 0..20_000u64 {
            let key = spin(6, i << 32 | n) % 4096;
            if how == "one" {
                let mut map = one.lock();
                let old = map.get(&key).copied().unwrap_or(n);
                map.insert(key, spin(40, old));
            } else {
                let old = many.get(&key).map_or(n, |v| *v);
                many.insert(key, spin(40, old));
            }
        }
    });
}

fn flume_consumers(how: &str) {
    let consumers = if how == "one" { 1 } else { 2 };
    let (send, receive) = flume::bounded::<u64>(64);
    thread::scope(|scope| {
        for _ in 0..consumers {
            let receive = receive.clone();
            scope.spawn(move || receive.iter().map(|n| spin(200, n)).fold(0, u64::wrapping_add));
        }
        for i in 0..2u64 {
            let send = send.clone();
            scope.spawn(move || (0..20_000).for_each(|n| send.send(spin(10, i << 32 | n)).unwrap()));
        }
        drop((send, receive));
    });
}

struct Connections;

impl r2d2::ManageConnection for Connections {
    type Connection = u64;
    type Error = std::io::Error;
    fn connect(&self) -> Result<u64, Self::Error> {
        Ok(0)
    }
    fn is_valid(&self, _: &mut u64) -> Result<(), Self::Error> {
        Ok(())
    }
    fn has_broken(&self, _: &mut u64) -> bool {
        false
    }
}

/// Each query takes 2 ms elsewhere.
fn r2d2_pool(how: &str) {
    let size = how.parse().unwrap();
    let pool = r2d2::Pool::builder().max_size(size).build(Connections).unwrap();
    each(4, |i| {
        for n in 0..200 {
            let connection = pool.get().unwrap();
            thread::sleep(Duration::from_millis(2));
            drop(connection);
            spin(300, i << 32 | n);
        }
    });
}

fn rayon_par_bridge(how: &str) {
    use rayon::prelude::*;
    let n = 400_000u64;
    let make = |n: u64| spin(12, n);
    let sum: u64 = if how == "bridge" {
        (0..n).map(make).par_bridge().map(|x| spin(12, x)).reduce(|| 0, u64::wrapping_add)
    } else {
        (0..n).into_par_iter().map(make).map(|x| spin(12, x)).reduce(|| 0, u64::wrapping_add)
    };
    println!("{sum}");
}

fn rayon_rwlock(how: &str) {
    use rayon::prelude::*;
    let one = RwLock::new(vec![0u64; 256]);
    let each: Vec<RwLock<u64>> = (0..256).map(|_| RwLock::new(0)).collect();
    (0..60_000u64).into_par_iter().for_each(|n| {
        let key = spin(10, n) % 256;
        if how == "one" {
            let mut all = one.write().unwrap();
            all[key as usize] = spin(60, n);
        } else {
            *each[key as usize].write().unwrap() = spin(60, n);
        }
    });
}

/// A tokio mutex that is held over a call to somebody else.
fn tokio_mutex(how: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let locks: Arc<Vec<tokio::sync::Mutex<u64>>> = Arc::new((0..8).map(tokio::sync::Mutex::new).collect());
    let one = how == "one";
    runtime.block_on(async {
        let tasks: Vec<_> = (0..8usize)
            .map(|i| {
                let locks = Arc::clone(&locks);
                tokio::spawn(async move {
                    for _ in 0..60 {
                        let mut guard = locks[if one { 0 } else { i }].lock().await;
                        tokio::time::sleep(Duration::from_millis(2)).await;
                        *guard = spin(200, *guard);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

fn tokio_blocking(how: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(how.parse().unwrap())
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..600u64).map(|n| tokio::task::spawn_blocking(move || spin(4000, n))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

/// Requests of eight tasks to one actor, or to four.
fn tokio_channel(how: &str) {
    let actors: usize = how.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let ways: Vec<_> = (0..actors)
            .map(|_| {
                let (way, mut requests) = tokio::sync::mpsc::channel::<(u64, tokio::sync::oneshot::Sender<u64>)>(32);
                tokio::spawn(async move {
                    while let Some((n, answer)) = requests.recv().await {
                        let _ = answer.send(spin(300, n));
                    }
                });
                way
            })
            .collect();
        let tasks: Vec<_> = (0..8usize)
            .map(|i| {
                let way = ways[i % actors].clone();
                tokio::spawn(async move {
                    for n in 0..3000 {
                        let (answer, get) = tokio::sync::oneshot::channel();
                        way.send((n, answer)).await.unwrap();
                        get.await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

/// Who misses computes while all others that want the same value wait; or a cache in front of nothing.
fn moka_cache(how: &str) {
    let cache = moka::sync::Cache::<u64, u64>::new(1000);
    let common = Mutex::new(0u64);
    each(4, |i| {
        for n in 0..2000u64 {
            let key = if how == "one" { n } else { i << 32 | n / 4 };
            let value = cache.get_with(key, || spin(800, key));
            if n == 1999 {
                *common.lock().unwrap() ^= value;
            }
        }
    });
}

/// A pipeline of three stages, of which the middle one is dear and has so many threads.
fn crossbeam_stages(how: &str) {
    let workers: usize = how.parse().unwrap();
    let (give, take) = crossbeam_channel::bounded::<usize>(16);
    let (hand, collect) = crossbeam_channel::bounded::<u8>(16);
    thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..4500 {
                hash(500);
                give.send(n).unwrap();
            }
        });
        for _ in 0..workers {
            let (take, hand) = (take.clone(), hand.clone());
            scope.spawn(move || take.iter().for_each(|_| hand.send(hash(6000)).unwrap()));
        }
        drop((take, hand));
        scope.spawn(move || {
            for _ in collect {
                hash(500);
            }
        });
    });
}

/// A cache whose lock is held while somebody else answers what it lacks; or a cache for each thread.
fn lru_cache(how: &str) {
    let size = 100.try_into().unwrap();
    let caches: Vec<_> = (0..if how == "one" { 1 } else { 4 })
        .map(|_| Mutex::new(lru::LruCache::<u64, u8>::new(size)))
        .collect();
    each(4, |i| {
        for n in 0..350 {
            let key = i * 1000 + n;
            let mut cache = caches[i as usize % caches.len()].lock().unwrap();
            if cache.get(&key).is_none() {
                thread::sleep(Duration::from_millis(2));
                cache.put(key, hash(200));
            }
            drop(cache);
            hash(1000);
        }
    });
}

/// Three processes compute under the lock of one file, or of their own.
fn fd_lock_files(how: &str) {
    let me = std::env::current_exe().unwrap();
    let children: Vec<_> = (0..3)
        .map(|i| {
            let file = if how == "one" { "lock".to_string() } else { format!("lock{i}") };
            std::process::Command::new(&me).args(["fdlock_file", &file]).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
}

fn fd_lock_file(path: &str) {
    use std::io::{Read, Write};
    let file = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    let mut lock = fd_lock::RwLock::new(file);
    for _ in 0..1300 {
        let mut guard = lock.write().unwrap();
        let mut text = String::new();
        guard.read_to_string(&mut text).unwrap();
        hash(6000);
        guard.write_all(b"x").unwrap();
        drop(guard);
        hash(600);
    }
}

// Held-up programs and their mended twins around npm packages: `node.js NAME VARIANT`, a fixed amount of work.
function spin(rounds) {
  let x = 1;
  for (let i = 0; i < rounds * 1000; i++) x = (Math.imul(x, 1103515245) + 12345) & 0x7fffffff;
  return x;
}
const { isMainThread } = require('worker_threads');
function hash(rounds) {
  const crypto = require('crypto');
  let bytes = Buffer.alloc(64);
  for (let i = 0; i < rounds; i++) bytes = crypto.createHash('sha256').update(bytes).digest();
  return bytes[0];
}
const programs = {
  // UV_THREADPOOL_SIZE says how many threads hash.
  async bcrypt() {
    const bcrypt = require('bcrypt');
    await Promise.all(Array.from({ length: 24 }, (_, i) => bcrypt.hash(`word ${i}`, 10)));
  },
  // Processes that ask for a lock file every 20 ms until they get it.
  async lockfile(how) {
    const { fork } = require('child_process');
    const all = [0, 1].map((i) => new Promise((ends) => fork(__filename, ['locker', how === 'one' ? 'f0' : `f${i}`]).on('exit', ends)));
    await Promise.all(all);
  },
  async locker(file) {
    const lockfile = require('proper-lockfile');
    const retries = { retries: 1000, factor: 1, minTimeout: 20, maxTimeout: 20 };
    for (let n = 0; n < 30; n++) {
      const release = await lockfile.lock(file, { retries, realpath: false });
      spin(25000);
      await release();
      spin(3000);
    }
  },
  // Tasks for a pool of so many threads, which run this file too.
  async piscina(how) {
    const { Piscina } = require('piscina');
    const pool = new Piscina({ filename: __filename, minThreads: +how, maxThreads: +how });
    await Promise.all(Array.from({ length: 100 }, () => pool.run(15000)));
    process.exit(0);
  },
};
if (isMainThread) programs[process.argv[2]](process.argv[3]);
else module.exports = hash;

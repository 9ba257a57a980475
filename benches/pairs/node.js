// Held-up programs and their mended twins around npm packages: `node.js NAME VARIANT`, a fixed amount of work.
function spin(rounds) {
  let x = 1;
  for (let i = 0; i < rounds * 1000; i++) x = (Math.imul(x, 1103515245) + 12345) & 0x7fffffff;
  return x;
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
};
programs[process.argv[2]](process.argv[3]);

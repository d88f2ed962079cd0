// What `npm test` shows of AVA's output: passed tests folded into a count, a note once, however many tests make it, and at the end
// what failed by its title, so that an output of which only the end is left still names it, and what took longest.

const PASSED = /^\s*✔ /;
const TIMED = /^\s*✔ (.*) \((?:(\d+)m )?([\d.]+)(m?s)\)$/;
/** A failed test, hook or file, and a test that had not ended. */
const FAILED = /^\s*[✘◌] (?:\[fail\]: )?(.+)$/;
const NOTE = /^\s*ℹ (.+)$/;

const secondsOf = ([, , minutes = '0', amount, unit]) =>
  Number(minutes) * 60 + Number(amount) / (unit === 'ms' ? 1000 : 1);

export class TestReport {
  #passed = 0;
  #timed = [];
  #failed = new Set();
  #notes = new Set();

  /**
   * @param line of AVA's output
   * @returns what is shown of it, if anything
   */
  line(line) {
    if (PASSED.test(line)) {
      const took = TIMED.exec(line);
      if (took) this.#timed.push({ title: took[1], seconds: secondsOf(took) });
      this.#passed += 1;
      return this.#passed % 50 === 0 ? `  ✔ ${this.#passed} passed so far` : undefined;
    }
    const [, failed] = FAILED.exec(line) ?? [];
    if (failed !== undefined) this.#failed.add(failed);
    const [, note] = NOTE.exec(line) ?? [];
    if (note === undefined) return line;
    if (this.#notes.has(note)) return undefined;
    this.#notes.add(note);
    return line;
  }

  /** @returns the lines at the end of the run: what failed, and where a run that grows longer should be looked at */
  end() {
    const slowest = this.#timed.sort((a, b) => b.seconds - a.seconds).slice(0, 10);
    const lines = [];
    if (this.#failed.size > 0)
      lines.push('What failed:', ...[...this.#failed].map((title) => `  ✘ ${title}`));
    if (slowest.length > 0 && slowest[0].seconds >= 5)
      lines.push(
        'The slowest tests:',
        ...slowest.map(({ title, seconds }) => `  ${seconds.toFixed(0).padStart(3)} s  ${title}`),
      );
    return lines;
  }
}

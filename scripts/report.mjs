// How the scripts speak to a person: numbered steps with durations, and errors that say what failed, why, and what to do.
// Used by every script that sets up, builds or starts something.

/** A failure that a person can act on. `code` never changes its meaning. */
export class SetupError extends Error {
  /**
   * @param {string} code such as BOUGH_SETUP_APT
   * @param {string} what what failed
   * @param {string} why the reason, as far as it is known
   * @param {string} fix what the person can do
   */
  constructor(code, what, why, fix) {
    super(`${what}: ${why}`);
    this.code = code;
    this.what = what;
    this.why = why;
    this.fix = fix;
  }
}

/** @param {number} ms @returns {string} such as `850 ms`, `12.3 s` or `4 min 05 s` */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
}

/** Prints one line per step: what it is, then how it ended and how long it took. */
export class Steps {
  #done = 0;

  #quiet;

  /** @param {string} heading @param {{quiet?: boolean}} [options] quiet: prints nothing, where output is for a program */
  constructor(heading, { quiet = false } = {}) {
    this.#quiet = quiet;
    if (!quiet) console.log(heading);
  }

  /**
   * @template T
   * @param {string} title
   * @param {(note: (text: string) => void, progress: (text: string) => void) => Promise<T> | T} work calls `note` to
   *   add a word on how it went, and `progress` to say how far it is
   * @returns {Promise<T>}
   */
  async run(title, work) {
    const number = String(++this.#done).padStart(2);
    const started = performance.now();
    let notes = '';
    let progress = '';
    // The person sees at once what is being waited for; on a terminal the line is then completed in place.
    const show = () => {
      const waited = performance.now() - started;
      process.stdout.write(`\r\x1b[K${number}. ${title} …${waited < 1000 ? '' : ` ${duration(waited)}`} ${progress}`);
    };
    const ticking = process.stdout.isTTY && !this.#quiet ? setInterval(show, 500) : undefined;
    if (ticking) show();
    const end = (/** @type {string} */ word) => {
      clearInterval(ticking);
      if (this.#quiet) return;
      const line = `${number}. ${title}: ${word}${notes} (${duration(performance.now() - started)})`;
      process.stdout.write(process.stdout.isTTY ? `\r\x1b[K${line}\n` : `${line}\n`);
    };
    try {
      const result = await work(
        (text) => (notes += notes === '' ? `, ${text}` : `; ${text}`),
        (text) => (progress = text),
      );
      end('ok');
      return result;
    } catch (error) {
      end('failed');
      throw error;
    }
  }
}

/** Prints an error the way a person can use it. @param {unknown} error */
export function printError(error) {
  if (error instanceof SetupError) {
    console.error(`\nerror ${error.code}: ${error.what}\n  why: ${error.why}\n  fix: ${error.fix}`);
  } else {
    console.error(error);
  }
}

/** Runs a script's main function; its result is the exit status. @param {() => Promise<number | void>} main */
export async function runMain(main) {
  try {
    process.exitCode = (await main()) ?? 0;
  } catch (error) {
    printError(error);
    process.exitCode = 1;
  }
}

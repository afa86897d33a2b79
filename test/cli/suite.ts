// A suite that runs whole programs: named steps in order, one line each, and the count as last line. Used by test/cli,
// test/agents and test/demo. A step that throws is a failure; a later step runs all the same.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class Suite {
  #passed = 0;
  #failed = 0;
  #skipped = 0;
  readonly #folders: string[] = [];

  async test(name: string, run: () => Promise<void> | void): Promise<void> {
    const startedMs = Date.now();
    try {
      await run();
      this.#passed++;
      console.log(`ok    ${name} (${Date.now() - startedMs} ms)`);
    } catch (error) {
      this.#failed++;
      console.log(`FAIL  ${name}`);
      console.log(String(error instanceof Error ? error.stack : error).replace(/^/gm, '      '));
    }
  }

  skip(name: string, why: string): void {
    this.#skipped++;
    console.log(`skip  ${name}: ${why}`);
  }

  /** A folder of this run, gone at `finish`. */
  folder(name: string): string {
    const made = mkdtempSync(join(tmpdir(), `bough-${name}-`));
    this.#folders.push(made);
    return made;
  }

  /** Prints the count and sets the exit status. */
  finish(): void {
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true });
    console.log(`${this.#passed} passed, ${this.#failed} failed, ${this.#skipped} skipped`);
    process.exitCode = this.#failed > 0 ? 1 : 0;
  }
}

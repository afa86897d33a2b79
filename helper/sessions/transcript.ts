// What a terminal has printed: the newest part in memory for whoever attaches, and in a file so that it survives the helper. Both
// are capped. Used by sessions.ts.
import { readFileSync, statSync } from 'node:fs';
import { appendFile, writeFile } from 'node:fs/promises';

const RING_BYTES = 256 * 1024;
const FILE_BYTES = 4 * 1024 * 1024;
const FLUSH_MS = 50;

export class Transcript {
  private parts: Buffer[] = [];
  private size = 0;
  private unwritten: Buffer[] = [];
  private fileSize = 0;
  private timer: NodeJS.Timeout | null = null;
  private flushing: Promise<void> = Promise.resolve();
  private kept = true;

  /** Goes on with what an earlier helper wrote. */
  constructor(private readonly file: string) {
    try {
      this.fileSize = statSync(file).size;
      if (this.fileSize > 0) this.remember(readFileSync(file).subarray(-RING_BYTES));
    } catch {
      // None yet.
    }
  }

  append(data: Buffer): void {
    this.remember(data);
    this.unwritten.push(data);
    this.timer ??= setTimeout(() => void this.flush(), FLUSH_MS);
  }

  /** The newest output as text, from the beginning of a line where something was cut off before. */
  replay(): string {
    const all = Buffer.concat(this.parts);
    if (all.length < RING_BYTES) return all.toString('utf8');
    const cut = all.subarray(-RING_BYTES);
    const line = cut.indexOf(10);
    return cut.subarray(line < 0 ? wholeCharacter(cut) : line + 1).toString('utf8');
  }

  /** Settles when everything so far is in the file. */
  async flush(): Promise<void> {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    const data = Buffer.concat(this.unwritten);
    this.unwritten = [];
    this.flushing = this.flushing.then(() => this.write(data));
    await this.flushing;
  }

  /** Its folder is about to go. */
  async drop(): Promise<void> {
    this.kept = false;
    await this.flush();
  }

  private remember(data: Buffer): void {
    this.parts.push(data);
    this.size += data.length;
    while (this.size - (this.parts[0]?.length ?? 0) >= RING_BYTES) this.size -= this.parts.shift()?.length ?? 0;
    // Thousands of one-byte prints would cost more in headers than in text.
    if (this.parts.length > 1024) {
      this.parts = [Buffer.concat(this.parts).subarray(-RING_BYTES)];
      this.size = this.parts[0]?.length ?? 0;
    }
  }

  private async write(data: Buffer): Promise<void> {
    if (!this.kept || data.length === 0) return;
    try {
      this.fileSize += data.length;
      if (this.fileSize > FILE_BYTES) {
        const newest = Buffer.concat(this.parts);
        await writeFile(this.file, newest, { mode: 0o600 });
        this.fileSize = newest.length;
      } else {
        await appendFile(this.file, data, { mode: 0o600 });
      }
    } catch {
      // A full disk costs the transcript, not the agent.
    }
  }
}

/** Offset of the first byte that begins a UTF-8 character. */
function wholeCharacter(data: Buffer): number {
  let at = 0;
  while (at < 4 && at < data.length && ((data[at] ?? 0) & 0xc0) === 0x80) at++;
  return at;
}

// The frames between this process and the agent inside the emulated KVM host, and between a client and the process that
// keeps a machine: id (u32), type (u8), size (u32), then that many bytes; little-endian. Each command has an id of its own.
// Used by machine.mjs, keeper.mjs and host.mjs; the agent is test/vm/kvm-host/agent.cc.

/** What a frame says. The numbers are the agent's too. */
export const FrameType = Object.freeze({
  start: 1, // strings ended by NUL: working directory, count of variables, variables, arguments
  input: 2,
  inputEnd: 3,
  signal: 4, // one byte: its number
  stop: 5, // to the keeper only: end the machine
  ready: 16,
  output: 17,
  error: 18,
  end: 19, // exit status, signal (0: none)
});

/** @typedef {{id: number, type: number, data: Buffer}} Frame */

const headerSize = 9;

/** @param {number} id @param {number} type @param {Uint8Array} [data] @returns {Buffer} */
export function encodeFrame(id, type, data = Buffer.alloc(0)) {
  const header = Buffer.alloc(headerSize);
  header.writeUInt32LE(id, 0);
  header.writeUInt8(type, 4);
  header.writeUInt32LE(data.length, 5);
  return Buffer.concat([header, data]);
}

/** @param {{cwd: string, env: Readonly<Record<string, string>>, command: readonly string[]}} what @returns {Buffer} */
export function encodeStart({ cwd, env, command }) {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return Buffer.from([cwd, String(variables.length), ...variables, ...command].map((word) => `${word}\0`).join(''));
}

/** Cuts a stream of bytes into frames. */
export class FrameReader {
  /** @type {Buffer} */
  #left = Buffer.alloc(0);

  /** @param {Buffer} bytes what has just come @returns {Frame[]} those that are complete now */
  push(bytes) {
    this.#left = this.#left.length === 0 ? bytes : Buffer.concat([this.#left, bytes]);
    /** @type {Frame[]} */
    const frames = [];
    let at = 0;
    while (this.#left.length - at >= headerSize) {
      const size = this.#left.readUInt32LE(at + 5);
      const end = at + headerSize + size;
      if (end > this.#left.length) break;
      const data = this.#left.subarray(at + headerSize, end);
      frames.push({ id: this.#left.readUInt32LE(at), type: this.#left.readUInt8(at + 4), data });
      at = end;
    }
    this.#left = this.#left.subarray(at);
    return frames;
  }
}

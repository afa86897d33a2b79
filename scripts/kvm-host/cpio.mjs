// Writes the archives that Linux unpacks as its first root. Used by initramfs.mjs and by test/vm/guest-kernel.
// Source: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel ("newc").

/**
 * @typedef {object} CpioEntry a folder comes before what is in it
 * @property {string} path
 * @property {number} mode with the type's bits
 * @property {Uint8Array | string} [data] of a file, or the target of a link
 * @property {readonly [number, number]} [device] major and minor number of a device node
 */

export const folderMode = 0o040755;
export const programMode = 0o100755;
export const fileMode = 0o100644;

/** @param {Buffer} part @returns {Buffer} padded to a multiple of four bytes */
function padded(part) {
  const rest = part.length % 4;
  return rest === 0 ? part : Buffer.concat([part, Buffer.alloc(4 - rest)]);
}

/** @param {number} number @param {CpioEntry} entry @returns {Buffer[]} */
function record(number, { path, mode, data = '', device = [0, 0] }) {
  const bytes = Buffer.from(data);
  const name = Buffer.from(`${path}\0`);
  // inode, mode, uid, gid, links, time, size, device (major, minor), device of a node (major, minor), name's size, sum
  const fields = [number, mode, 0, 0, 1, 0, bytes.length, 0, 0, ...device, name.length, 0];
  const header = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`;
  return [padded(Buffer.concat([Buffer.from(header), name])), padded(bytes)];
}

/** @param {readonly CpioEntry[]} entries @returns {Buffer} archives may be put one after another */
export function cpioArchive(entries) {
  const records = entries.flatMap((entry, index) => record(index + 1, entry));
  return Buffer.concat([...records, ...record(0, { path: 'TRAILER!!!', mode: 0 })]);
}

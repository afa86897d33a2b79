// Writes the archives that Linux unpacks as its first root. Used by initramfs.mjs and guest-kernel's boot check.
// Source: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel ("newc").

/**
 * @typedef {{path: string, mode: number, data?: Uint8Array | string}} CpioEntry `mode` with the type's bits; a folder
 *   comes before what is in it; the data of a link is its target
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
function record(number, { path, mode, data = '' }) {
  const bytes = Buffer.from(data);
  const name = Buffer.from(`${path}\0`);
  // inode, mode, uid, gid, links, time, size, device (major, minor), device of a node (major, minor), name's size, sum
  const fields = [number, mode, 0, 0, 1, 0, bytes.length, 0, 0, 0, 0, name.length, 0];
  const header = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`;
  return [padded(Buffer.concat([Buffer.from(header), name])), padded(bytes)];
}

/** @param {readonly CpioEntry[]} entries @returns {Buffer} archives may be put one after another */
export function cpioArchive(entries) {
  const records = entries.flatMap((entry, index) => record(index + 1, entry));
  return Buffer.concat([...records, ...record(0, { path: 'TRAILER!!!', mode: 0 })]);
}

// The peer of bench/transport: the same small file system in memory, served by the npm package fuse-native (libfuse 2).
// node fuse-native.cjs <folder that holds fuse-native> <mount point>; prints `ready`, unmounts when stdin ends.
'use strict';
const { createRequire } = require('node:module');
const { join } = require('node:path');

const [, , folder, mountPoint] = process.argv;
const Fuse = createRequire(join(folder, 'index.js'))('fuse-native');

const files = new Map([['/', { directory: true, data: Buffer.alloc(0) }]]);
const now = new Date();
const attributes = (file) => ({
  mtime: now,
  atime: now,
  ctime: now,
  nlink: 1,
  size: file.data.length,
  mode: file.directory ? 0o40755 : 0o100644,
  uid: 0,
  gid: 0,
});
const fuse = new Fuse(
  mountPoint,
  {
    readdir: (path, done) =>
      done(
        0,
        [...files.keys()].filter((name) => name !== '/').map((name) => name.slice(1)),
      ),
    getattr: (path, done) => (files.has(path) ? done(0, attributes(files.get(path))) : done(Fuse.ENOENT)),
    create: (path, mode, done) => {
      files.set(path, { directory: false, data: Buffer.alloc(0) });
      done(0, 1);
    },
    open: (path, flags, done) => done(0, 1),
    release: (path, handle, done) => done(0),
    read: (path, handle, buffer, length, position, done) => {
      const part = files.get(path).data.subarray(position, position + length);
      part.copy(buffer);
      done(part.length);
    },
    write: (path, handle, buffer, length, position, done) => {
      const file = files.get(path);
      if (position + length > file.data.length) {
        const longer = Buffer.alloc(position + length);
        file.data.copy(longer);
        file.data = longer;
      }
      buffer.copy(file.data, position, 0, length);
      done(length);
    },
  },
  { force: true },
);
fuse.mount((error) => console.log(error ? String(error) : 'ready'));
process.stdin.on('end', () => fuse.unmount(() => process.exit(0))).resume();

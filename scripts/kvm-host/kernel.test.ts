import { describe, expect, it } from 'vitest';
import { cpioArchive, fileMode } from './cpio.mjs';
import { dependenciesOfModule, kernelInside } from './kernel.mjs';

describe('kernel of the emulated host', () => {
  it('reads what a module depends on', () => {
    const module = (text: string) => Buffer.from(`\x7fELF\0license=GPL\0${text}\0name=x\0`, 'latin1');
    expect(dependenciesOfModule(module('depends=kvm,ccp-crypto'))).toEqual(['kvm', 'ccp_crypto']);
    expect(dependenciesOfModule(module('depends='))).toEqual([]);
    expect(dependenciesOfModule(module('softdep=pre: kvm'))).toEqual([]);
  });

  it('cuts the compressed kernel out of a bzImage', () => {
    const image = Buffer.alloc(8192, 1);
    image.writeUInt8(3, 0x1f1); // four sectors before the code
    image.write('HdrS', 0x202, 'latin1');
    image.writeUInt32LE(0x100, 0x248);
    image.writeUInt32LE(20, 0x24c);
    image.write('compressed bytes', 2048 + 0x100);
    expect(kernelInside(image).toString()).toBe('compressed bytes');
    expect(() => kernelInside(Buffer.from('no kernel'))).toThrow('not a bzImage');
  });
});

describe('first root', () => {
  it('is padded as the kernel reads it, with the sizes in the headers', () => {
    const archive = cpioArchive([{ path: 'init', mode: fileMode, data: 'hello' }]);
    expect(archive.length % 4).toBe(0);
    expect(archive.toString('latin1', 0, 6)).toBe('070701');
    expect(parseInt(archive.toString('latin1', 6 + 8 * 6, 6 + 8 * 7), 16)).toBe(5);
    expect(archive.toString('latin1', 116, 121)).toBe('hello'); // 110 of header, "init\0", padding
    expect(archive.includes('TRAILER!!!')).toBe(true);
  });
});

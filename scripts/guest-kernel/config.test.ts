import { describe, expect, it } from 'vitest';
import { mergedConfig, readFragment, unkept } from './config.mjs';

describe('kernel configuration', () => {
  const base = '# Why.\nCONFIG_HZ_100=y\nCONFIG_NR=1\n# CONFIG_SMP is not set\n';

  it('lets a later fragment win', () => {
    const merged = mergedConfig([base, '# CONFIG_HZ_100 is not set\nCONFIG_SMP=y\n']);
    expect(merged.trim().split('\n')).toEqual(['# CONFIG_HZ_100 is not set', 'CONFIG_NR=1', 'CONFIG_SMP=y']);
  });

  it('tells what did not come out as written', () => {
    const wanted = readFragment(base);
    expect(unkept(wanted, 'CONFIG_HZ_100=y\nCONFIG_NR=1\n')).toEqual([]);
    expect(unkept(wanted, 'CONFIG_HZ_100=y\nCONFIG_NR=2\nCONFIG_SMP=y\n')).toEqual(['CONFIG_NR=1', 'CONFIG_SMP=n']);
    expect(unkept(wanted, '# CONFIG_HZ_100 is not set\nCONFIG_NR=1\n')).toEqual(['CONFIG_HZ_100=y']);
  });

  it('forgives only an option that may be unknown, and only if it is', () => {
    const wanted = readFragment('# Tables (where it exists).\nCONFIG_A=y\nCONFIG_B=y\n');
    expect(unkept(wanted, 'CONFIG_B=y\n')).toEqual([]);
    expect(unkept(wanted, '# CONFIG_A is not set\nCONFIG_B=y\n')).toEqual(['CONFIG_A=y']);
    expect(unkept(wanted, 'CONFIG_A=y\n')).toEqual(['CONFIG_B=y']);
  });

  it('keeps the forgiveness through a merge', () => {
    const merged = mergedConfig(['# (where it exists)\nCONFIG_A=y\n', 'CONFIG_B="x y"\n']);
    expect(unkept(readFragment(merged), 'CONFIG_B="x y"\n')).toEqual([]);
  });
});

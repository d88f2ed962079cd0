import type { LogRecord } from '../src/core/kernel/log/record.ts';

/** A record like those of a reconciler's leg: the size that a quiet network writes most. */
export function reconcilerRecord(seq: number): LogRecord {
  return {
    seq,
    at: 1_795_200_000_000 + seq,
    actor: `reconciler.leg/eth1.${seq % 100}`,
    machine: 'reconciler',
    version: 1,
    event: {
      type: 'LEG_READ',
      ncid: '4be19c02d7a83f5516e1795200000123',
      addresses: ['fd5e:21aa:90c4:10::1/64'],
    },
    from: 'reading',
    to: { value: 'whole', context: { lastNcid: `4be19c02d7a83f5516e${1_795_200_000_000 + seq}` } },
    effects: [],
    correlation: `0193${String(seq).padStart(8, '0')}-7532-806c-84493a33b97a`,
    ...(seq > 1 && { cause: seq - 1 }),
  };
}

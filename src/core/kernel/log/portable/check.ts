import { KernelError } from '../../errors/kernel-error.ts';
import { chainHash } from '../chain-hash.ts';
import { checkRecord } from '../record.ts';
import { isGenuine } from '../signing.ts';
import { readLines } from './file.ts';
import { parseHeader, parseLine } from './format.ts';

const STEP = 500;

/**
 * Reads an export or an archive from its begin to its end, and checks every line of it. Memory stays flat: unlike
 * `openReader`, nothing is kept of it. Yields the records read so far.
 *
 * @throws HF_PORTABLE_* the file is not whole; HF_LOG_CORRUPT naming the first record that is not what was written
 */
export async function* checkPortable(
  file: string,
): AsyncGenerator<number, { readonly from: number; readonly to: number }> {
  const lines = readLines(file);
  const first = await lines.next();
  if (first.done) throw new KernelError('HF_PORTABLE_FOREIGN', { file, reason: 'it is empty' });
  const { range, chainStart, complete } = parseHeader(first.value.text, file);
  let newest = { seq: range.from - 1, hash: chainStart };
  let records = 0;
  let isEnded = false;
  for await (const { text, line } of lines) {
    const damaged = (reason: string) => new KernelError('HF_PORTABLE_DAMAGED', { file, line, reason });
    if (isEnded) throw damaged('there is more behind the end');
    const parsed = parseLine(text, file, line);
    switch (parsed.kind) {
      case 'state':
        break;
      case 'record': {
        const { seq } = checkRecord(newest.seq + 1, parsed.value, true);
        if (seq !== newest.seq + 1 && complete)
          throw new KernelError('HF_LOG_CORRUPT', { seq: newest.seq + 1, reason: 'it is missing' });
        const link = seq === newest.seq + 1 ? newest.hash : parsed.previous;
        if (chainHash(link ?? '', parsed.body) !== parsed.hash)
          throw new KernelError('HF_LOG_CORRUPT', {
            seq,
            reason: 'its hash does not fit what stands before it',
          });
        newest = { seq, hash: parsed.hash };
        records += 1;
        if (records % STEP === 0) yield records;
        break;
      }
      case 'signature': {
        const { signature } = parsed;
        if (signature.seq !== newest.seq || signature.hash !== newest.hash || !isGenuine('record', signature))
          throw damaged('a signature is not that of the record before it');
        break;
      }
      case 'end': {
        const { end } = parsed;
        if (end.records !== records || end.seq !== newest.seq || end.hash !== newest.hash)
          throw damaged(`it tells of ${end.records} records up to ${end.seq}, not of these`);
        isEnded = true;
      }
    }
  }
  if (!isEnded) {
    const reason = `the end is missing; the file is cut off behind record ${newest.seq}`;
    throw new KernelError('HF_PORTABLE_DAMAGED', { file, line: records + 1, reason });
  }
  return range;
}

import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CHAIN_START, chainHash } from '../../src/core/kernel/log/chain-hash.ts';
import { Mark, writeHead } from '../../src/core/kernel/log/head.ts';
import { insertSignature, LogKey, signaturesBetween } from '../../src/core/kernel/log/signing.ts';

/**
 * Rewrites the past of a stopped folder as somebody does who has its signing key: the body of one record is changed, and
 * every hash, signature, noted head and mark after it is made anew.
 */
export function rewritePast(dir: string, seq: number, change: (body: string) => string): void {
  const key = new LogKey(createPrivateKey(readFileSync(join(dir, 'secrets', 'log-signing-key'))));
  const db = new DatabaseSync(join(dir, 'log.db'));
  const rows = db.prepare('SELECT seq, body FROM records ORDER BY seq').all();
  const update = db.prepare('UPDATE records SET body = ?, hash = ? WHERE seq = ?');
  const hashes = new Map<number, string>();
  let hash = CHAIN_START;
  for (const row of rows) {
    const body = row.seq === seq ? change(String(row.body)) : String(row.body);
    hash = chainHash(hash, body);
    hashes.set(Number(row.seq), hash);
    update.run(body, hash, Number(row.seq));
  }
  const signed = signaturesBetween(db, 1, Number.MAX_SAFE_INTEGER);
  for (const { seq } of signed) insertSignature(db, key.sign('record', seq, hashes.get(seq) ?? ''));
  db.close();
  const last = signed.at(-1)?.seq ?? 0;
  writeHead(dir, key.sign('record', last, hashes.get(last) ?? ''));
  const mark = new Mark(dir);
  mark.write({ seq: rows.length, hash });
  mark.close();
}

// What is noted beside the key of a log: its newest signature and the newest record that was acknowledged. The thread that
// writes the log loads this file, and must not load the schemas with which others read it.
import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../durable-file.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { headFile, parseSignature, type Signature } from './signing.ts';

/** A record's number and hash that were noted elsewhere. */
export interface Anchor {
  readonly seq: number;
  readonly hash: string;
}

/**
 * Notes the newest signature beside the key, where somebody who truncates the database or replaces it by an older one
 * does not reach it. The file appears whole or not at all.
 */
export function writeHead(dataDir: string, head: Signature): void {
  replaceFile(headFile(dataDir), `${JSON.stringify(head)}\n`);
}

/**
 * @returns undefined when the log was never signed here
 * @throws HF_LOG_UNTRUSTED it is not what was noted
 */
export function readHead(dataDir: string): Signature | undefined {
  const file = headFile(dataDir);
  if (!existsSync(file)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    value = undefined; // reported below
  }
  const head = parseSignature(value);
  if (head) return head;
  throw new KernelError('HF_LOG_UNTRUSTED', {
    dir: dataDir,
    reason: 'secrets/log-head holds no signature',
  });
}

/** One line of constant length, which is overwritten in place. */
const BYTES = 96;

/**
 * The newest record that was acknowledged, noted beside the key. It is written after each commit and not synced: the
 * kernel keeps it through a kill; after a power cut it may be older than the log, but never newer. So a log that is
 * shorter has lost a record that was acknowledged.
 */
export class Mark {
  readonly #file: string;
  #descriptor: number | undefined;

  constructor(dataDir: string) {
    this.#file = markFile(dataDir);
  }

  /** An error of the disk is not thrown here: the next commit reports it. */
  write({ seq, hash }: Anchor): void {
    try {
      this.#descriptor ??= openSync(this.#file, existsSync(this.#file) ? 'r+' : 'w', 0o600);
      writeSync(this.#descriptor, `${`${seq}:${hash}`.padEnd(BYTES - 1)}\n`, 0);
    } catch {
      // The older mark stays, and is still true.
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }
}

/** @returns undefined when nothing was acknowledged yet, or a power cut tore it */
export function readMark(dataDir: string): Anchor | undefined {
  try {
    const [, seq, hash] =
      /^(\d{1,15}):([0-9a-f]{64}) *\n$/.exec(readFileSync(markFile(dataDir), 'utf8')) ?? [];
    return seq !== undefined && hash !== undefined ? { seq: Number(seq), hash } : undefined;
  } catch {
    return undefined;
  }
}

function markFile(dataDir: string): string {
  return join(dataDir, 'secrets', 'log-mark');
}

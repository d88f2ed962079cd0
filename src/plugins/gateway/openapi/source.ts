/** Where OpenAPI documents come from, and what they must be: what their digest says, and nothing that holds the gateway up. */
import { hash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { Semaphore } from '../../../core/host/concurrency.ts';
import { HttpCallError, type HttpClient } from '../../../core/host/http/client.ts';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { startWorker } from '../../../core/kernel/worker.ts';
import { GatewayError } from '../errors.ts';
import type { DocumentResult, DocumentTask } from './description.ts';
import type { ApiDescription, Selection } from './model.ts';

/** The largest document, bytes. */
export const DOCUMENT_LIMIT = 8 * 1024 * 1024;
/** How long reading one from an address may take, milliseconds. */
export const FETCH_MS = 10_000;
/** How long a worker may take with one, milliseconds, and its heap, MiB. */
const READING_MS = 20_000;
const HEAP_MIB = 512;
/** Documents at a time: many routes must not take all processors at a start. */
const readers = new Semaphore(2);

/** A document as it is stored now. */
export interface FoundDocument {
  readonly text: string;
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string;
}

const isAddress = (document: string): boolean => /^https?:\/\//i.test(document);

/** @returns the name of a document for people: without a query, which may hold a secret */
export function documentName(document: string): string {
  const url = isAddress(document) ? URL.parse(document) : null;
  return url ? url.origin + url.pathname : document;
}

/**
 * @param document a file, or an `http(s)` address
 * @throws HF_GATEWAY_OPENAPI it is too large, or no file; HF_GATEWAY_OPENAPI_AWAY its address does not answer with it
 */
export async function findDocument(
  document: string,
  http: HttpClient,
  signal?: AbortSignal,
): Promise<FoundDocument> {
  const bytes = isAddress(document) ? await fetched(document, http, signal) : await read(document);
  return {
    text: bytes.toString('utf8'),
    digest: `sha256:${hash('sha256', bytes, 'hex')}`,
  };
}

/** @throws HF_GATEWAY_OPENAPI_CHANGED it has another digest than is pinned; as `findDocument` */
export async function findPinned(
  document: string,
  pinned: string,
  http: HttpClient,
  signal?: AbortSignal,
): Promise<FoundDocument> {
  const found = await findDocument(document, http, signal);
  if (found.digest === pinned) return found;
  throw new GatewayError('HF_GATEWAY_OPENAPI_CHANGED', {
    document: documentName(document),
    found: found.digest,
    pinned,
  });
}

async function fetched(url: string, http: HttpClient, signal: AbortSignal | undefined): Promise<Buffer> {
  try {
    const { ok, status, bytes } = await http.call({
      url,
      timeoutMs: FETCH_MS,
      ...(signal && { signal }),
    });
    if (!ok) throw away(url, `its server answers with status ${status}`);
    return bytes;
  } catch (error) {
    if (error instanceof HttpCallError && error.failure === 'too_large')
      throw refused(url, `it is larger than ${DOCUMENT_LIMIT} bytes`);
    if (error instanceof HttpCallError) throw away(url, error.reason);
    throw error;
  }
}

async function read(file: string): Promise<Buffer> {
  try {
    const facts = await stat(file); // before it is opened: a pipe would keep us waiting
    if (!facts.isFile()) throw refused(file, 'it is no file');
    const bytes = facts.size > DOCUMENT_LIMIT ? undefined : await readFile(file);
    if (bytes && bytes.length <= DOCUMENT_LIMIT) return bytes;
    throw refused(file, `it is larger than ${DOCUMENT_LIMIT} bytes`);
  } catch (error) {
    if (error instanceof Error && 'syscall' in error && 'code' in error)
      throw refused(file, `it can not be read (${error.code})`);
    throw error;
  }
}

/**
 * Reads a document on a thread of its own.
 *
 * @param selection of the operations that become tools; none unless given
 * @throws HF_GATEWAY_OPENAPI the document, or an operation that was chosen, can not be used
 */
export function readDocument(
  document: string,
  { text }: FoundDocument,
  selection?: Selection,
): Promise<ApiDescription> {
  return readers.run(() => readInWorker(document, { text, ...(selection && { selection }) }));
}

async function readInWorker(document: string, data: DocumentTask): Promise<ApiDescription> {
  const { promise, resolve: settle } = Promise.withResolvers<DocumentResult>();
  const worker = startWorker<DocumentResult>({
    module: './document-worker',
    base: import.meta.url,
    name: 'gateway-openapi',
    data,
    heapMiB: HEAP_MIB,
    onMessage: settle,
    onEnd: (reason) => settle({ ok: false, reason: `it can not be read: ${reason}` }),
  });
  const late = { ok: false, reason: `reading it takes longer than ${READING_MS / 1_000} s` } as const;
  const timer = setTimeout(() => settle(late), READING_MS);
  try {
    const result = await promise;
    if (result.ok) return result.api;
    throw refused(document, result.reason);
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}

const away = (document: string, reason: string): HoldfastError =>
  new GatewayError('HF_GATEWAY_OPENAPI_AWAY', { document: documentName(document), reason });

const refused = (document: string, reason: string): HoldfastError =>
  new GatewayError('HF_GATEWAY_OPENAPI', { document: documentName(document), reason });

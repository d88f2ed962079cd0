/**
 * Producers of spans. As a process of its own it sends what it is asked to by message, so that its work is not taken for
 * that of the receiver.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { Encoding } from '../../src/plugins/otlp/decode/decode.ts';
import { build } from '../../src/plugins/otlp/decode/protobuf.ts';

const MEDIA = { json: 'application/json', protobuf: 'application/x-protobuf' } as const;

export interface Order {
  readonly http: string;
  readonly key: string;
  readonly encoding: Encoding;
  /** Spans a request. */
  readonly size: number;
  readonly requests: number;
  readonly atOnce: number;
  /** Between two requests of one producer, ms; at once when absent. The producers begin one after another. */
  readonly everyMs?: number;
  readonly untilMs?: number;
  /** Names the service of each request after its number. */
  readonly isNumbered?: boolean;
}

export interface Sent {
  /** How long each answer took, ms. */
  readonly took: readonly number[];
  /** Answers by status; 0 is none. */
  readonly statuses: Readonly<Record<number, number>>;
  /** Numbers of the requests that were answered 200. */
  readonly acknowledged: readonly number[];
}

/** A request of so many spans, as an instrumented HTTP server sends them. */
export function bodyOf(encoding: Encoding, count: number): Buffer {
  const start = BigInt(Date.now()) * 1_000_000n;
  const attribute = (key: string, stringValue: string) => ({ key, value: { stringValue } });
  const spans = Array.from({ length: count }, (_, at) => ({
    traceId: (at + 1).toString(16).padStart(32, '0'),
    spanId: (at + 1).toString(16).padStart(16, '0'),
    name: `POST /server_${at % 10}/mcp`,
    kind: 2,
    startTimeUnixNano: String(start + BigInt(at)),
    endTimeUnixNano: String(start + BigInt(at) + 1_000_000n),
    attributes: [
      attribute('http.target', `/server_${at % 10}/mcp`),
      attribute('http.method', 'POST'),
      { key: 'http.status_code', value: { intValue: '200' } },
      attribute('user_id', `user-${at % 50}`),
    ],
    status: {},
  }));
  const resource = [attribute('service.name', 'shop'), attribute('host.name', 'host-1')];
  const message = {
    resourceSpans: [{ resource: { attributes: resource }, scopeSpans: [{ scope: { name: 'http' }, spans }] }],
  };
  if (encoding === 'json') return Buffer.from(JSON.stringify(message));
  const type = build().lookupType('TraceRequest');
  const bytes = JSON.parse(JSON.stringify(message), (key, value) =>
    key === 'traceId' || key === 'spanId' ? [...Buffer.from(value, 'hex')] : value,
  );
  return Buffer.from(type.encode(type.fromObject(bytes)).finish());
}

/** @param acknowledge called at each request that is answered 200 */
export async function send(order: Order, acknowledge = () => {}): Promise<Sent> {
  const { http, key, encoding, size, requests, atOnce, everyMs, untilMs, isNumbered } = order;
  const agent = new Agent({ connections: atOnce });
  const body = bodyOf(encoding, size);
  const text = isNumbered ? body.toString() : '';
  const took: number[] = [];
  const statuses: Record<number, number> = {};
  const acknowledged: number[] = [];
  const end = untilMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + untilMs;
  let next = 0;
  let gone = false;
  const producer = async (_: unknown, place: number) => {
    if (everyMs !== undefined) await sleep((everyMs * place) / atOnce);
    while (next < requests && performance.now() < end && !gone) {
      const number = next;
      next += 1;
      const began = performance.now();
      const headers = { 'content-type': MEDIA[encoding], authorization: key };
      const sent = isNumbered ? text.replace('"shop"', `"r${number}"`) : body;
      const status = await request(`${http}/v1/traces`, {
        method: 'POST',
        dispatcher: agent,
        headers,
        body: sent,
      }).then(
        async (answer) => {
          await answer.body.dump();
          return answer.statusCode;
        },
        () => 0,
      );
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status === 200) {
        acknowledged.push(number);
        acknowledge();
        took.push(performance.now() - began);
      }
      if (status === 0) gone = true;
      const rest = everyMs === undefined ? (status === 200 ? 0 : 50) : everyMs - (performance.now() - began);
      if (rest > 0) await sleep(rest);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, producer));
  await agent.destroy();
  return { took, statuses, acknowledged };
}

if (process.send && process.argv[1] === import.meta.filename) {
  process.on('message', (order: Order) => void send(order).then((sent) => process.send?.(sent)));
}

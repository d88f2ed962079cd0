import { z } from 'zod';
import {
  type ColumnarDatabase,
  ColumnarDatabaseToken,
} from '../../../src/core/contracts/columnar-database.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';

export const TRACE = '5b8efff798038103d269b633813fc60c';
export const LARGE = '7d1ed4ee1d1ee71ed4ee1d1ee7000001';
/** What a stranger may call a span, or write into a log. */
export const HOSTILE = '<img src=x onerror=alert(1)></script><b>"\'`';
export const CANARY = 'canary-5d07f2a91c';

/** Hands the instance's database to a test. */
export function databaseOf(given: { database?: ColumnarDatabase }) {
  return definePlugin({
    name: 'shop',
    options: z.strictObject({}),
    wants: [ColumnarDatabaseToken],
    start({ find }) {
      const database = find(ColumnarDatabaseToken);
      if (database) given.database = database;
      return {};
    },
    register() {},
  })();
}

/** Telemetry of a small shop, up to now: log lines of all severities, a failed trace, one of many spans, hostile texts. */
export async function fillShop(database: ColumnarDatabase, now: number, many = 2_000): Promise<void> {
  const at = (ms: number) => new Date(now + ms).toISOString();
  const services = ['gateway', 'shop', 'stock', 'payments'];
  await database.insert(
    'otel_logs',
    Array.from({ length: 120 }, (_, index) => {
      const isError = index % 40 === 7;
      return {
        Timestamp: at(-index * 11_000 - 2_000),
        ServiceName: services[index % 4],
        SeverityText: isError ? 'ERROR' : index % 11 === 3 ? 'WARN' : 'INFO',
        SeverityNumber: isError ? 17 : index % 11 === 3 ? 13 : 9,
        Body: isError ? 'stock did not answer within 2 s' : `cart ${index} was looked at`,
        LogAttributes: { 'http.route': '/cart', 'cart.items': String(index % 9), password: CANARY },
        ResourceAttributes: { 'host.name': 'shop-1' },
        ...(index === 7 && { TraceId: TRACE, SpanId: 'a000000000000003' }),
        ...(index === 2 && { Body: HOSTILE, ServiceName: 'shop' }),
      };
    }),
  );
  const span = (
    start: number,
    ms: number,
    id: string,
    name: string,
    service: string,
    parent = '',
    more = {},
  ) => ({
    Timestamp: at(start),
    Duration: String(Math.round(ms * 1e6)),
    TraceId: TRACE,
    SpanId: id,
    ParentSpanId: parent,
    SpanName: name,
    ServiceName: service,
    SpanKind: parent === '' ? 'Server' : 'Internal',
    StatusCode: 'Unset',
    SpanAttributes: { 'http.route': '/cart', authorization: `Bearer ${CANARY}` },
    ...more,
  });
  const began = -81_000;
  await database.insert('otel_traces', [
    span(began, 2_140, 'a000000000000001', 'POST /cart', 'gateway', '', { StatusCode: 'Error' }),
    span(began + 4, 12.25, 'a000000000000002', 'authenticate', 'gateway', 'a000000000000001'),
    span(began + 20, 2_100, 'a000000000000003', 'reserve', 'stock', 'a000000000000001', {
      StatusCode: 'Error',
      StatusMessage: 'deadline exceeded',
      'Events.Timestamp': [at(began + 2_010)],
      'Events.Name': ['exception'],
      'Events.Attributes': [{ 'exception.type': 'TimeoutError' }],
    }),
    span(began + 30, 0.34, 'a000000000000004', HOSTILE, 'shop', 'a000000000000003'),
    span(began + 40, 2_000, 'a000000000000005', 'SELECT stock', 'stock', 'a000000000000003', {
      StatusCode: 'Error',
    }),
    span(began + 2_124, 9, 'a000000000000006', 'apologize', 'shop', 'a000000000000001'),
  ]);
  await database.insert(
    'otel_traces',
    Array.from({ length: many }, (_, index) => {
      const parent = index === 0 ? '' : id(Math.floor((index - 1) / 5));
      const start = -60_000 + index * 7;
      return {
        ...span(
          start,
          Math.max(3, 14_000 - index * 7),
          id(index),
          `step ${index}`,
          services[index % 4] ?? '',
          parent,
        ),
        TraceId: LARGE,
        ...(index === many - 1 && { StatusCode: 'Error', StatusMessage: 'the last one' }),
      };
    }),
  );
}

const id = (index: number): string => `b${index.toString(16).padStart(15, '0')}`;

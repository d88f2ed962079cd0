import type { ErrorEntry } from './entry.ts';
import { alertingErrors } from './table/alerting.ts';
import { cliErrors } from './table/cli.ts';
import { clusterErrors } from './table/cluster.ts';
import { columnarErrors } from './table/columnar.ts';
import { gatewayErrors } from './table/gateway.ts';
import { httpErrors } from './table/http.ts';
import { ingestErrors } from './table/ingest.ts';
import { logErrors } from './table/log.ts';
import { memoryErrors } from './table/memory.ts';
import { restoreErrors } from './table/restore.ts';
import { routerErrors } from './table/router.ts';
import { runtimeErrors } from './table/runtime.ts';
import { setupErrors } from './table/setup.ts';
import { uptimeErrors } from './table/uptime.ts';

/**
 * Every error that a person can meet, by area. `docs/reference/errors.md` is generated from this table, and a test proves that
 * the table, the page and the codes raised in `src/`, `bin/` and `scripts/` agree.
 */
export const errorTable = {
  ...setupErrors,
  ...runtimeErrors,
  ...logErrors,
  ...httpErrors,
  ...routerErrors,
  ...gatewayErrors,
  ...columnarErrors,
  ...ingestErrors,
  ...uptimeErrors,
  ...alertingErrors,
  ...clusterErrors,
  ...memoryErrors,
  ...restoreErrors,
  ...cliErrors,
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errorTable;

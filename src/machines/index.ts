/**
 * The pure machines: one XState definition a file, each a decision that can be replayed. A machine computes its
 * next state and the effects it asks for from its context and one event, and from nothing else: no clock, no
 * randomness, no I/O. This folder imports nothing of ours; `plugins` imports single machines from their files,
 * `core` none. `test/machines/purity.test.ts` walks `allMachines` and fails on a file that is missing from it.
 *
 * As `holdfast/machines` it is also the door for machines outside of this repository: they are written with the very
 * XState that runs them.
 */
import type { AnyStateMachine } from 'xstate';
import { accessPoints } from './access-points.ts';
import { addressSets } from './address-sets.ts';
import { alert } from './alert.ts';
import { alertOutbox } from './alert-outbox.ts';
import { alertRule } from './alert-rule.ts';
import { alertSilences } from './alert-silences.ts';
import { collectorFinding } from './collector-finding.ts';
import { configTransaction } from './config-transaction.ts';
import { dhcpService } from './dhcp-service.ts';
import { drillOverdue } from './drill-overdue.ts';
import { handPush } from './hand-push.ts';
import { heartbeat } from './heartbeat.ts';
import { ingestKeyRotation } from './ingest-key-rotation.ts';
import { job } from './job.ts';
import { mcpAccess } from './mcp-access.ts';
import { mcpDoor } from './mcp-door.ts';
import { mcpRouteHealth } from './mcp-route-health.ts';
import { mcpRoutes } from './mcp-routes.ts';
import { pipelineProbe } from './pipeline-probe.ts';
import { pushMonitor } from './push-monitor.ts';
import { reconciler } from './reconciler.ts';
import { reconcilerUnit } from './reconciler-unit.ts';
import { restore } from './restore.ts';
import { snapshotJob } from './snapshot-job.ts';
import { storeConnection } from './store-connection.ts';
import { telemetryIntake } from './telemetry-intake.ts';
import { wan } from './wan.ts';
import { watchdogRun } from './watchdog-run.ts';

export { and, assign, not, or, setup } from 'xstate';
export { type Alert, effect } from './effect.ts';

/** Every machine of this folder, by the name of its file. */
export const allMachines: Readonly<Record<string, AnyStateMachine>> = {
  'access-points': accessPoints,
  'address-sets': addressSets,
  alert,
  'alert-outbox': alertOutbox,
  'alert-rule': alertRule,
  'alert-silences': alertSilences,
  'collector-finding': collectorFinding,
  'config-transaction': configTransaction,
  'dhcp-service': dhcpService,
  'drill-overdue': drillOverdue,
  'hand-push': handPush,
  heartbeat,
  'ingest-key-rotation': ingestKeyRotation,
  job,
  'mcp-access': mcpAccess,
  'mcp-door': mcpDoor,
  'mcp-route-health': mcpRouteHealth,
  'mcp-routes': mcpRoutes,
  'pipeline-probe': pipelineProbe,
  'push-monitor': pushMonitor,
  reconciler,
  'reconciler-unit': reconcilerUnit,
  restore,
  'snapshot-job': snapshotJob,
  'store-connection': storeConnection,
  'telemetry-intake': telemetryIntake,
  wan,
  'watchdog-run': watchdogRun,
};

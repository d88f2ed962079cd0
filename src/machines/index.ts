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
import { alert } from './alerts/alert.ts';
import { alertOutbox } from './alerts/outbox.ts';
import { alertRule } from './alerts/rule.ts';
import { alertSilences } from './alerts/silences.ts';
import { collectorFinding } from './collector/finding.ts';
import { ingestKeyRotation } from './collector/key-rotation.ts';
import { pipelineProbe } from './collector/probe.ts';
import { storeConnection } from './connection.ts';
import { mcpDoor } from './gateway/admission.ts';
import { mcpAccess } from './gateway/key.ts';
import { mcpRouteHealth } from './gateway/route-health.ts';
import { mcpRoutes } from './gateway/routes.ts';
import { job } from './jobs/job.ts';
import { snapshotJob } from './memory/backups.ts';
import { telemetryIntake } from './otlp/intake.ts';
import { heartbeat } from './reconciler/heartbeat.ts';
import { reconciler } from './reconciler/leg.ts';
import { reconcilerUnit } from './reconciler/unit.ts';
import { restore } from './restore/drill.ts';
import { drillOverdue } from './restore/overdue.ts';
import { accessPoints } from './router/access-points.ts';
import { addressSets } from './router/address-sets.ts';
import { configTransaction } from './router/config.ts';
import { dhcpService } from './router/dhcp.ts';
import { wan } from './router/wan.ts';
import { handPush } from './uptime/push.ts';
import { pushMonitor } from './uptime-monitor/monitor.ts';
import { watchdogRun } from './watchdog/run.ts';

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

import type { Alert } from '../effect.ts';
import {
  type Args,
  type CheckName,
  isRefreshed,
  pending,
  type RefreshCheck,
  type RotationContext,
} from './key-rotation-rules.ts';

/** Which checks prove together that a key was taken up where no producer sends to our receiver. */
const ELSEWHERE: readonly CheckName[] = ['synced_secret', 'pods', 'metrics'];

/** The checks of this event, with that of the producers before them. */
export function checksOf({ context, event }: Args): readonly RefreshCheck[] {
  const made: readonly RefreshCheck[] =
    event.type === 'CHECKED'
      ? event.checks
      : ELSEWHERE.map((check) => ({ check, result: 'not_checked', text: reasonOf(event) }));
  return [producersCheck(context), ...made];
}

function reasonOf(event: Args['event']): string {
  return event.type === 'effect.failed' ? `looking failed: ${event.message}` : 'nobody looked';
}

/** What our receiver has seen of the producers within the cluster. */
function producersCheck(context: RotationContext): RefreshCheck {
  const outside = new Set(context.external);
  const late = pending(context).filter((name) => !outside.has(name));
  if (late.length > 0) {
    return { check: 'producers', result: 'not', text: `still seen with the old key: ${listOf(late)}` };
  }
  const moved = Object.entries(context.producers).flatMap(([name, { fresh }]) => (fresh ? [name] : []));
  if (moved.length > 0)
    return { check: 'producers', result: 'ok', text: `the new key uses ${listOf(moved)}` };
  const text = 'no producer was seen at our receiver, neither with the old key nor with the new one';
  return { check: 'producers', result: 'not_checked', text };
}

/**
 * Whether nothing is left to wait for: nothing speaks against it, and either the producers were seen, or everything else was
 * looked at and is well.
 */
export function isConfirmed(args: Args): boolean {
  const checks = checksOf(args);
  if (checks.some(({ result }) => result === 'not')) return false;
  const isElsewhere = ELSEWHERE.every((name) =>
    checks.some(({ check, result }) => check === name && result === 'ok'),
  );
  return isElsewhere || isRefreshed(args.context);
}

/** The window is over, and a check says that the new key was not taken up. */
export function unconfirmedAlert(args: Args): Alert {
  const failed = checksOf(args).filter(({ result }) => result === 'not');
  const found = failed.map(({ text }) => text).join('; ');
  return {
    name: 'collector.rotation_not_refreshed',
    severity: 'warning',
    text: `The ingest key was rotated, and not everyone within the cluster has the new one: ${found.slice(0, 500)}.`,
    labels: { checks: failed.map(({ check }) => check).join(', ') },
  };
}

export function hasFailedCheck(args: Args): boolean {
  return checksOf(args).some(({ result }) => result === 'not');
}

/** A few names, and how many more. */
function listOf(names: readonly string[]): string {
  const shown = names.slice(0, 5).join(', ');
  return names.length > 5 ? `${shown} and ${names.length - 5} more` : shown;
}

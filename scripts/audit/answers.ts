/** What answers of `npm audit --json` say: "ok" only of an answer that a registry gave, and that says so itself. */
import { z } from 'zod';

export interface Finding {
  readonly state: 'ok' | 'failed' | 'not checked';
  readonly text: string;
}

const severities = z.object({
  info: z.int(),
  low: z.int(),
  moderate: z.int(),
  high: z.int(),
  critical: z.int(),
});
/** `prod` counts the project itself, too: a report of nothing else is none. */
const report = z.object({
  auditReportVersion: z.int(),
  vulnerabilities: z.record(z.string(), z.object({ severity: z.string() })),
  metadata: z.object({ vulnerabilities: severities, dependencies: z.object({ prod: z.int().min(2) }) }),
});
const named = z.object({ name: z.string(), version: z.string() });
const signed = z.object({ invalid: z.array(named), missing: z.array(named) });
/** npm's own words for why it has no result: of the registry's answer, or of the way to it. */
const refused = z.object({
  message: z.string().exactOptional(),
  error: z.object({ summary: z.string() }).partial().exactOptional(),
});

/** @param answer standard output of `npm audit --json` */
export function advisories(answer: string): Finding {
  const { data } = report.safeParse(parse(answer));
  if (data === undefined) return unanswered(answer);
  const { info, low, moderate, high, critical } = data.metadata.vulnerabilities;
  const counts = `${critical} critical, ${high} high, ${moderate + low + info} lesser`;
  const grave = Object.entries(data.vulnerabilities).flatMap(([name, { severity }]) =>
    severity === 'high' || severity === 'critical' ? [name] : [],
  );
  if (critical + high > 0 || grave.length > 0)
    return { state: 'failed', text: `${counts}: ${grave.join(', ')}; npm audit says more` };
  return { state: 'ok', text: `${data.metadata.dependencies.prod - 1} packages, ${counts}` };
}

/** @param answer standard output of `npm audit signatures --json` */
export function signatures(answer: string): Finding {
  const { data } = signed.safeParse(parse(answer));
  if (data === undefined) return unanswered(answer);
  const list = (packages: z.output<typeof named>[]) =>
    packages.map(({ name, version }) => `${name}@${version}`).join(', ');
  if (data.invalid.length > 0) return { state: 'failed', text: `invalid: ${list(data.invalid)}` };
  if (data.missing.length > 0) return { state: 'failed', text: `missing: ${list(data.missing)}` };
  return { state: 'ok', text: 'what is installed has the signatures of its registry' };
}

function unanswered(answer: string): Finding {
  const { data } = refused.safeParse(parse(answer));
  // The address may name a registry of the operator's own.
  const reason = (data?.message || data?.error?.summary || '').replace(/\S*:\/\/\S*/g, '…').split('\n')[0];
  return { state: 'not checked', text: reason || 'npm gave no result' };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

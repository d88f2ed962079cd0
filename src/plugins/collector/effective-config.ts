import { closeSync, constants, fstatSync, openSync, readSync, unwatchFile, watchFile } from 'node:fs';
import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';
import { z } from 'zod';
import { plaintextHost } from '../../core/host/http/plaintext.ts';

/** The extension whose tokens admit producers. */
const AUTHENTICATOR = 'bearertokenauth/hyperdx';
/** The shape of an ingest key: a UUID as the UI writes it. */
const INGEST_KEY = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** Exporters that keep nothing. */
const IDLE_EXPORTERS = new Set(['debug', 'logging', 'nop']);
const MOST_TOKENS = 64;

/** The possible findings with their severity. A finding that lasts becomes an alert. */
export const FINDINGS = {
  unreadable: 'warning',
  bootstrap_only: 'critical',
  auth_not_enforced: 'critical',
  no_token: 'critical',
  plaintext_off_host: 'warning',
} as const;

export type FindingCode = keyof typeof FINDINGS;

/** What is wrong with a collector's config, in words for a person and without secrets. */
export interface Finding {
  readonly code: FindingCode;
  readonly text: string;
  readonly remedy: string;
}

/** The parts of an effective collector config that concern ingestion. It contains secrets: never log it. */
export interface EffectiveConfig {
  /** Everything that the collector's receiver accepts. */
  readonly tokens: readonly string[];
  /** The first token of the ingest key's shape (O8). */
  readonly ingestKey?: string | undefined;
  readonly findings: readonly Finding[];
}

const section = z.record(z.string(), z.unknown()).nullish();
const names = z.array(z.string()).nullish();
const shape = z.looseObject({
  extensions: section,
  receivers: section,
  exporters: section,
  service: z
    .looseObject({
      extensions: names,
      pipelines: z
        .record(z.string(), z.looseObject({ receivers: names, exporters: names }).nullish())
        .nullish(),
    })
    .nullish(),
});
const bearer = z.looseObject({ token: z.string().nullish(), tokens: z.array(z.string()).nullish() });
const listener = z.looseObject({ auth: z.looseObject({ authenticator: z.string().nullish() }).nullish() });
const receiver = z.looseObject({ protocols: z.record(z.string(), z.unknown()).nullish() });
const exporter = z.looseObject({
  endpoint: z.string().nullish(),
  tls: z.looseObject({ insecure: z.boolean().nullish() }).nullish(),
});

type Shape = z.output<typeof shape>;

/** The parser comes with the first config: it takes 4 MB of memory, and many a runtime has no collector (bench `idle`). */
const loadYaml = (): typeof Yaml => createRequire(import.meta.url)('yaml');

/**
 * Reads the text of an effective collector config. A config that can't be read is a finding, not an error: the
 * collector keeps its last good config, and so does Holdfast.
 *
 * @param text YAML; aliases are refused, because a few lines of them can grow without bound
 */
export function readEffectiveConfig(text: string): EffectiveConfig {
  let config: Shape;
  try {
    const { parseDocument } = loadYaml();
    const document = parseDocument(text, { logLevel: 'silent' });
    // The parser's own message quotes the line, which may hold a token.
    if (document.errors[0]) return unreadable(`it is no YAML (${document.errors[0].code})`);
    const parsed = shape.safeParse(document.toJS({ maxAliasCount: 0 }));
    if (!parsed.success) return unreadable(`it has another form at ${pathOf(parsed.error)}`);
    config = parsed.data;
  } catch {
    return unreadable('it holds aliases, or is nested too deep');
  }
  const tokens = tokensOf(config.extensions?.[AUTHENTICATOR]);
  return {
    tokens,
    ingestKey: tokens.find((token) => INGEST_KEY.test(token)),
    findings: [...findings(config, tokens)],
  };
}

export function unreadable(reason: string): EffectiveConfig {
  const remedy = 'Check the file and its permissions; until then the keys that were last read stay.';
  return { tokens: [], findings: [{ code: 'unreadable', text: `It can't be read: ${reason}.`, remedy }] };
}

function* findings(config: Shape, tokens: readonly string[]): Generator<Finding> {
  const pipelines = Object.values(config.service?.pipelines ?? {});
  const used = new Set(pipelines.flatMap((pipeline) => pipeline?.exporters ?? []));
  if ([...used].every((name) => IDLE_EXPORTERS.has(kindOf(name)))) {
    yield {
      code: 'bootstrap_only',
      text: 'It exports nothing but debug output: it is the bootstrap config, not the effective one.',
      remedy:
        'The collector has no config from the UI yet. Check whether its supervisor reaches the UI over OpAMP; changes of chart values or of the bootstrap file change nothing.',
    };
    return;
  }
  if (!tokens.some((token) => INGEST_KEY.test(token))) {
    yield {
      code: 'no_token',
      text: `${AUTHENTICATOR} holds no ingest key.`,
      remedy:
        'Log in to the UI once: the key is made with the first team, and reaches the collector over OpAMP.',
    };
  }
  const open = openListeners(config, new Set(pipelines.flatMap((pipeline) => pipeline?.receivers ?? [])));
  if (open.length > 0) {
    yield {
      code: 'auth_not_enforced',
      text: `Authentication is not enforced: ${open.join(', ')} admit every client.`,
      remedy:
        'Enforce authentication of the collector in the UI; until then let no network but the cluster reach these ports.',
    };
  }
  const plain = plaintextExporters(config, used);
  if (plain.length > 0) {
    yield {
      code: 'plaintext_off_host',
      text: `OTLP leaves the host in plaintext: ${plain.join(', ')}.`,
      remedy: 'Send it to the OTLP gateway, port 443, with a client certificate.',
    };
  }
}

/** OTLP listeners that require no token. */
function openListeners(config: Shape, used: ReadonlySet<string>): string[] {
  const running = new Set(config.service?.extensions ?? []);
  const open: string[] = [];
  for (const name of used) {
    if (kindOf(name) !== 'otlp') continue;
    const { protocols } = receiver.safeParse(config.receivers?.[name] ?? {}).data ?? {};
    for (const [protocol, settings] of Object.entries(protocols ?? {})) {
      const authenticator = listener.safeParse(settings ?? {}).data?.auth?.authenticator;
      if (!authenticator || !running.has(authenticator)) open.push(`${name} ${protocol}`);
    }
  }
  return open;
}

function plaintextExporters(config: Shape, used: ReadonlySet<string>): string[] {
  const plain: string[] = [];
  for (const name of used) {
    if (!['otlp', 'otlphttp', 'otlp_http', 'otlp_grpc'].includes(kindOf(name))) continue;
    const { endpoint, tls } = exporter.safeParse(config.exporters?.[name] ?? {}).data ?? {};
    if (!endpoint) continue;
    const isBare = !endpoint.includes('://');
    if (isBare && tls?.insecure !== true) continue;
    const host = plaintextHost(isBare ? `http://${endpoint}` : endpoint);
    if (host !== undefined) plain.push(`${name} to ${host}`);
  }
  return plain;
}

function tokensOf(extension: unknown): string[] {
  const { token, tokens } = bearer.safeParse(extension ?? {}).data ?? {};
  const all = [...(tokens ?? []), ...(token ? [token] : [])];
  // A value with `${…}` is a reference that the collector resolves, not a token.
  return [...new Set(all.map((text) => text.trim()))]
    .filter((text) => text !== '' && !text.includes('${'))
    .slice(0, MOST_TOKENS);
}

/** The type of a component: `otlp` of `otlp/hyperdx`. */
function kindOf(name: string): string {
  return name.split('/')[0] ?? name;
}

function pathOf(error: z.ZodError): string {
  return error.issues[0]?.path.join('.') || 'its root';
}

const LARGEST_BYTES = 1024 * 1024;

/** Reads an effective collector config as it is now; what can't be read is a finding. @param file absolute path */
export function readConfigFile(file: string): EffectiveConfig {
  let descriptor: number;
  try {
    // Non-blocking, or opening a pipe would wait for its writer and hold up everything.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    return unreadable(error instanceof Error && 'code' in error ? String(error.code) : 'it does not open');
  }
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) return unreadable('it is not a regular file');
    if (stat.size > LARGEST_BYTES) return unreadable(`it is larger than ${LARGEST_BYTES} bytes`);
    const content = Buffer.alloc(stat.size);
    return readEffectiveConfig(content.toString('utf8', 0, readSync(descriptor, content, 0, stat.size, 0)));
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Calls back when the file was replaced or changed. It polls the file's status, because a cluster mounts files behind a link
 * two folders up, whose replacement is no event of this folder.
 *
 * @returns ends the watch
 */
export function watchConfigFile(file: string, everyMs: number, changed: () => void): () => void {
  const look = () => changed();
  watchFile(file, { interval: everyMs, persistent: false }, look);
  return () => unwatchFile(file, look);
}

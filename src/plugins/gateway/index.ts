/**
 * The MCP gateway (port 4000): ten servers behind one host and one key header. Decisions are the machines'
 * (`machines/gateway/key.ts`, `machines/gateway/rejections.ts`). A call is one object (`calls/call.ts`): `calls/endpoint.ts`
 * makes it of a request, `calls/decisions.ts` has the key's actor decide, `calls/open-calls.ts` runs what is admitted, and
 * `upstream/` asks the server and passes its answer on.
 *
 * Imports core, bus and its machines; no other plugin.
 */

import { resolve } from 'node:path';
import { z } from 'zod';
import { alertLinks } from '../../core/contracts/alerts.ts';
import { ClusterToken } from '../../core/contracts/cluster.ts';
import { mcpRoutes } from '../../core/contracts/mcp-routes.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { TelemetryToken } from '../../core/contracts/telemetry.ts';
import { HttpClient } from '../../core/host/http/client.ts';
import { addressOf, addressOptions, budgetOption } from '../../core/host/http/listen-options.ts';
import { definePlugin, type Services } from '../../core/host/plugin/definition.ts';
import { aggregateEndpoint } from './aggregate/endpoint.ts';
import { registerApprovals } from './approvals/actor.ts';
import { Approvals } from './approvals/approvals.ts';
import { ApprovalLinks } from './approvals/link.ts';
import { decideHere, deniedView, ownViews, serveApprovalOperations } from './approvals/operations.ts';
import { ApprovalsElsewhere } from './approvals/other-hosts.ts';
import { approvalPages } from './approvals/page.ts';
import { BrowserOrigins, originSchema } from './browser-origins.ts';
import { Decisions, registerCallEffects } from './calls/decisions.ts';
import { mcpEndpoint } from './calls/endpoint.ts';
import { HostStanding } from './calls/host-standing.ts';
import { KeyUsage } from './calls/key-usage.ts';
import { OpenCalls } from './calls/open-calls.ts';
import { RejectionLimiter, registerRejections } from './calls/rejection-limiter.ts';
import { RenewedSessions } from './calls/renewed-sessions.ts';
import { endUnhandled } from './calls/unhandled.ts';
import { approvalCommands } from './commands/approvals.ts';
import { clientConfigCommand } from './commands/client-config.ts';
import { keyCommands } from './commands/keys.ts';
import { documentsCheck, openapiCommand } from './commands/openapi.ts';
import { reloadCommand, rollbackCommand, routesCommand } from './commands/routes.ts';
import { acceptToolsCommand, toolsCommand } from './commands/tools.ts';
import { DocumentCache } from './discovery/document-cache.ts';
import { discoveryRoutes } from './discovery/endpoint.ts';
import { doctorCommand } from './doctor/command.ts';
import { GatewayError } from './errors.ts';
import { upstreamAgent } from './fast-path/upstream-request.ts';
import { adminEndpoints } from './http/admin.ts';
import { edgeRoutes, surfaceErrorBody } from './http/edges.ts';
import { ISSUER_ANSWER_LIMIT, ISSUER_DEADLINE_MS } from './issued/token-endpoint.ts';
import { KeyAdmin } from './keys/admin.ts';
import { watchUnknownPaths } from './keys/misplaced-keys.ts';
import { serveKeyOperations } from './keys/operations.ts';
import { registerSlices } from './keys/slices.ts';
import { KeyDirectory, MasterKey, registerKeys } from './keys/virtual-keys.ts';
import { UpstreamDispatcher } from './local/dispatcher.ts';
import { PROBE_ANSWER_LIMIT, PROBE_DEADLINE_MS } from './mcp/probe-client.ts';
import { registerRoutes, startRoutes } from './register-routes.ts';
import { secretFields } from './secret-fields.ts';
import { EndedSessions, registerEndedSessions } from './session/ended-sessions.ts';
import { SealedSessions } from './session/sealed-sessions.ts';
import type { CallTelemetry } from './telemetry/call-facts.ts';
import { noTelemetry } from './telemetry/call-telemetry.ts';

export { clientCredentials, credentialFree, overwrite, relay, tokenExchange } from './routes/entry.ts';
export { type CredentialRequest, defineRouteKind, type KindInput, type RouteKind } from './routes/kind.ts';

const options = z.strictObject({
  ...addressOptions(4000),
  /** Requests without a known key that one caller may make at once, and how many more each second allows. */
  strangerBudget: budgetOption(),
  /** The base URL that clients use, e.g. `https://mcp.example.net`; the request's `Host` unless set. */
  publicUrl: z.url({ protocol: /^https?$/ }).optional(),
  /** File (mode 0600) with the master key; generated in the data folder when absent. */
  masterKeyFile: z.string().min(1).optional(),
  /** Files (mode 0600, 32 bytes) with the keys of session ids: the first seals, all open. Share them among replicas. */
  sessionKeyFiles: z.array(z.string().min(1)).min(1).optional(),
  /** Requests that one key may have open at once, unless `max_parallel_requests` of the key says otherwise. */
  maxParallel: z.int().min(1).max(1_000_000).default(1_000),
  /** Event streams that one key may have open at once, unless `max_streams` of the key says otherwise. */
  maxStreams: z.int().min(1).max(1_000_000).default(10_000),
  /** Largest request, bytes. */
  bodyLimit: z
    .int()
    .min(1_024)
    .default(4 * 1024 * 1024),
  /** Bytes of request bodies that the gateway holds for one key at a time; one request is always accepted. */
  maxHeldBytes: z
    .int()
    .min(65_536)
    .default(64 * 1024 * 1024),
  /** Origins of web pages that may call the servers, e.g. `https://app.example.net`; no page may unless set. */
  corsOrigins: z.array(originSchema).max(100).default([]),
  /** Longest time for a whole request to arrive, milliseconds. */
  requestTimeoutMs: z.int().min(100).max(3_600_000).default(30_000),
  /** What is measured of calls when a telemetry plugin exports it. */
  telemetry: z
    .strictObject({
      /** Whether each call of a tool gets a child span as well. */
      toolSpans: z.boolean().default(false),
    })
    .prefault({}),
  /** Longest wait for upstreams in one request to `/mcp/`, milliseconds. */
  aggregateDeadlineMs: z.int().min(100).max(120_000).default(10_000),
  /**
   * With more tools than this a client of `/mcp/` that asks by `x-mcp-tool-search: 1` gets `search_tools` and `call_tool` in
   * place of their definitions; nobody does unless set.
   */
  toolSearchAbove: z.int().min(0).max(100_000).optional(),
  /** Interval of the probes of each route's upstream, milliseconds; 0 disables them. */
  probeEveryMs: z.int().min(0).max(86_400_000).default(60_000),
  /**
   * With several hosts: for how long one that is cut off from the others serves keys that it knows, milliseconds; routes that
   * write wait at once.
   */
  isolationGraceMs: z
    .int()
    .min(0)
    .max(86_400_000)
    .default(5 * 60_000),
  /** How calls wait that a person must approve. */
  approvals: z
    .strictObject({
      /** How long a person has to decide, and how long a denial stands, milliseconds. */
      deadlineMs: z
        .int()
        .min(10_000)
        .max(86_400_000)
        .default(15 * 60_000),
      /** Requests at once, denied ones included until their time is over. */
      maxWaiting: z.int().min(1).max(1_000).default(100),
      /** The same of one key. */
      maxWaitingPerKey: z.int().min(1).max(1_000).default(10),
    })
    .prefault({}),
  /** Made with `overwrite`, `relay`, `credentialFree`, `clientCredentials`, `tokenExchange` or a custom kind. Each entry is checked separately. */
  routes: z.array(z.unknown()).max(1_000).default([]),
});

/**
 * The plugin `gateway`: one host and one virtual key before the MCP servers.
 *
 * @public
 */
export const gateway = definePlugin({
  name: 'gateway',
  about: {
    area: 'MCP gateway',
    what: 'one host and one virtual key before the MCP servers',
    docs: 'gateway.md',
  },
  options,
  secretFields,
  errors: GatewayError,
  onFailure: 'continue', // a port that is taken must not take the router's keeper down
  wants: [SecretsStoreToken, TelemetryToken, ClusterToken],
  collects: [mcpRoutes],
  env: {
    HOLDFAST_GATEWAY_PORT: 'port',
    HOLDFAST_PUBLIC_URL: 'publicUrl',
  },
  variables: {
    HOLDFAST_GATEWAY_PORT: 'Port of the MCP gateway.',
    HOLDFAST_PUBLIC_URL: 'The base under which clients see the gateway.',
    HOLDFAST_MASTER_KEY: 'The master key itself; a file is better.',
    HOLDFAST_MASTER_KEY_FILE: 'File (mode 0600) with the master key; made in the data folder when absent.',
    'HOLDFAST_MCP_<SERVER>_URL': 'Upstream of a server, e.g. HOLDFAST_MCP_LIBRARY_DOCS_URL.',
    'HOLDFAST_MCP_<SERVER>_TOKEN_FILE': 'File (mode 0600) with the token of that upstream.',
    'HOLDFAST_MCP_<SERVER>_TOKEN': 'The token itself; a file is better.',
    'HOLDFAST_MCP_<SERVER>_CLIENT_SECRET_FILE':
      "File (mode 0600) with the secret of the gateway's client at that upstream's authorization server.",
    'HOLDFAST_MCP_<SERVER>_CLIENT_SECRET': 'The secret itself; a file is better.',
    'HOLDFAST_MCP_<SERVER>_INSECURE':
      'Whether its token may go to another machine over http; not unless `true`.',
  },
  start: startGateway,
  register(context, settings) {
    const { bodyLimit, requestTimeoutMs } = settings;
    const address = addressOf(settings);
    const publicBase = publicBaseOf(settings);

    registerKeys(context);
    registerRejections(context);
    registerCallEffects(context);
    registerSlices(context);
    registerEndedSessions(context);
    registerApprovals(context);
    registerRoutes(context);
    context.control(serveKeyOperations);
    context.control(serveApprovalOperations);
    context.contribute(alertLinks, ({ approvalLinks }) => approvalLinks);
    for (const command of [routesCommand, reloadCommand, rollbackCommand, toolsCommand, acceptToolsCommand])
      context.command(command);
    context.command(openapiCommand);
    const check = documentsCheck(settings.routes);
    if (check) context.check(check);
    for (const command of [clientConfigCommand(settings), doctorCommand(settings)]) context.command(command);
    for (const command of [...keyCommands, ...approvalCommands]) context.command(command);

    context.http(
      {
        ...address,
        name: 'gateway',
        allowedHosts: [...address.allowedHosts, ...(publicBase ? [new URL(publicBase).hostname] : [])],
        publicOrigin: publicBase && new URL(publicBase).origin,
        bodyLimit,
        requestTimeoutMs,
        checkOriginOfReads: true, // a stream is read by GET
        portVariable: 'HOLDFAST_GATEWAY_PORT',
        admission: 'own',
        keyedPath: { method: 'GET', path: '/key/info' },
        writeBudget: 'own', // by key; who has none by `strangerBudget`, and is one record a second
        errorBody: surfaceErrorBody,
      },
      (http, started) => {
        started.openCalls.drainWith(http.draining);
        adminEndpoints(http, started);
        const origins = new BrowserOrigins(settings.corsOrigins);
        mcpEndpoint(http, started, origins);
        aggregateEndpoint(http, started, settings, origins);
        approvalPages(http, started);
        edgeRoutes(http, started);
        discoveryRoutes(http, started, origins);
        watchUnknownPaths(http, started);
        http.onUnhandled((request) => endUnhandled(started, request));
      },
    );
    context.onStop(async ({ agent, issuers, openCalls, ended }) => {
      openCalls.stop();
      ended.stop();
      await Promise.all([agent.destroy(), issuers.http.close()]);
    });
  },
});

type Settings = z.output<typeof options>;

/** As a host stands that is alone. */
const NOT_CUT_OFF = { isIsolated: false, isBehind: false, silentMs: 0 };

const publicBaseOf = ({ publicUrl }: Settings): string | undefined => publicUrl?.replace(/\/+$/, '');

/**
 * Makes what the endpoints use; each of them names what it needs. What may fail comes before the first connection and
 * timer.
 */
async function startGateway(services: Services, settings: Settings) {
  const { dataDir, clock, logger } = services;
  const publicBase = publicBaseOf(settings);
  const scheme = settings.tls && !settings.socket ? 'https' : 'http';
  const cluster = services.find(ClusterToken);
  const master = MasterKey.open(dataDir, settings.masterKeyFile, cluster?.key('gateway master key'));
  const [keyFile, ...olderFiles] = settings.sessionKeyFiles ?? [];
  const ownFile = resolve(dataDir, 'secrets', 'gateway-session-key');
  const sessionKey = cluster?.key('gateway session');
  const sessions = SealedSessions.fromFiles([keyFile ?? ownFile, ...olderFiles], sessionKey);
  const ended = new EndedSessions(services);
  const keys = new KeyDirectory(services.actors, { master, sessions, isShared: cluster !== undefined });
  const usage = new KeyUsage({
    calls: settings.maxParallel,
    streams: settings.maxStreams,
    heldBytes: settings.maxHeldBytes,
    longestBody: settings.bodyLimit,
  });
  const graceMs = settings.isolationGraceMs;
  const standing = cluster && new HostStanding(cluster, { graceMs, usage, keys });
  const decisions = new Decisions(services, usage, standing);
  const approvalsElsewhere =
    cluster &&
    new ApprovalsElsewhere(cluster, {
      list: () => ownViews(approvals),
      denied: (digest) => deniedView(approvals, digest),
      decide: (decision, from) => decideHere({ services, approvals }, decision, { from }),
    });
  const others = standing &&
    approvalsElsewhere && {
      refusal: (writes: boolean) => standing.refusal(writes),
      denied: (digest: string) => approvalsElsewhere.denied(digest),
    };
  const approvals = new Approvals(services, settings.approvals, others);
  const telemetry = await callTelemetry(services, settings);
  const agent = new UpstreamDispatcher(upstreamAgent());
  const http = new HttpClient({
    timeoutMs: PROBE_DEADLINE_MS,
    answerLimit: PROBE_ANSWER_LIMIT,
    dispatcher: agent,
    insecure: true, // an address that must not get its route's credential is no route
  });
  const documents = new DocumentCache(http, () => performance.now());
  const issuers = {
    http: new HttpClient({ timeoutMs: ISSUER_DEADLINE_MS, answerLimit: ISSUER_ANSWER_LIMIT, clock }),
    clock,
  };
  const sent = { http, documents, agent, issuers, publicBase };
  const { loader, prober, locals } = await startRoutes(services, settings, sent);
  return {
    services,
    cluster,
    clock,
    logger,
    decisions,
    approvals,
    approvalsElsewhere,
    approvalLinks: new ApprovalLinks({
      approvals,
      clock,
      dataDir,
      publicBase,
      sharedKey: cluster?.key('gateway approval link'),
      deadlineMs: settings.approvals.deadlineMs,
    }),
    openCalls: new OpenCalls(clock, standing),
    usage,
    rejections: new RejectionLimiter(services, decisions, settings.strangerBudget),
    keys,
    admin: new KeyAdmin({
      ...{ services, keys, servers: () => loader.table.routes },
      cutOffMs: () => {
        const { isIsolated, isBehind, silentMs } = cluster?.standing() ?? NOT_CUT_OFF;
        return isIsolated && !isBehind ? silentMs : 0;
      },
    }),
    sessions,
    ended,
    renewed: new RenewedSessions(ended),
    agent,
    documents,
    issuers,
    loader,
    prober,
    locals,
    telemetry,
    routes: loader,
    publicBase,
    publicUrl: (requestHost: string | undefined) => publicBase ?? `${scheme}://${requestHost ?? 'localhost'}`,
  };
}

async function callTelemetry(
  services: Services,
  { telemetry: { toolSpans } }: Settings,
): Promise<CallTelemetry> {
  const telemetry = services.find(TelemetryToken);
  if (!telemetry?.enabled) return noTelemetry;
  const { recordedCalls } = await import('./telemetry/recorded-calls.ts');
  return recordedCalls(telemetry, toolSpans);
}

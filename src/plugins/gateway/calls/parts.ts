import type { Dispatcher } from 'undici';
import type { Services } from '../../../core/host/plugin/definition.ts';
import type { DocumentCache } from '../discovery/document-cache.ts';
import type { KeyDirectory } from '../keys/directory.ts';
import type { RouteTable } from '../routes/route.ts';
import type { SealedSessions } from '../session/sealed-sessions.ts';
import type { CallTelemetry } from '../telemetry/call-telemetry.ts';
import type { Judged } from './judged.ts';
import type { HeldBodies, OpenSlots } from './key-usage.ts';
import type { LiveCalls } from './live-call.ts';
import type { Door } from './rejection-limiter.ts';
import type { Repeats } from './repeats.ts';

/** What the endpoints stand on; there once the plugin has started. */
export interface GatewayParts {
  readonly services: Services;
  readonly keys: KeyDirectory;
  readonly calls: LiveCalls;
  /** Where calls of known keys are decided. */
  readonly repeats: Repeats<Judged>;
  /** What each key has open. */
  readonly slots: OpenSlots;
  /** How much of requests each key has us hold. */
  readonly bodies: HeldBodies;
  /** Where callers without a key are turned away. */
  readonly door: Door;
  readonly sessions: SealedSessions;
  readonly agent: Dispatcher;
  /** The protected-resource documents of upstreams. */
  readonly documents: DocumentCache;
  readonly telemetry: CallTelemetry;
  /** The table that serves now. */
  readonly table: () => RouteTable;
  /** The configured public base, without a slash at its end. */
  readonly publicBase: string | undefined;
  /** The same, or what a request's `Host` says. @param host of the request, where none is configured */
  readonly publicUrl: (host: string | undefined) => string;
}

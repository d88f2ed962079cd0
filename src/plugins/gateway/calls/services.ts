import type { Dispatcher } from 'undici';
import type { Services } from '../../../core/host/plugin/definition.ts';
import type { DocumentCache } from '../discovery/document-cache.ts';
import type { KeyDirectory } from '../keys/virtual-keys.ts';
import type { RouteTable } from '../routes/route.ts';
import type { SealedSessions } from '../session/sealed-sessions.ts';
import type { CallTelemetry } from '../telemetry/call-telemetry.ts';
import type { Decisions } from './decisions.ts';
import type { KeyUsage } from './key-usage.ts';
import type { OpenCalls } from './open-calls.ts';
import type { RejectionLimiter } from './rejection-limiter.ts';

/** What the endpoints of the gateway use, once the plugin has started. */
export interface GatewayServices {
  readonly services: Services;
  readonly keys: KeyDirectory;
  /** Where calls of known keys are decided. */
  readonly decisions: Decisions;
  /** The admitted calls that go on. */
  readonly openCalls: OpenCalls;
  /** What each key has open and has the gateway hold. */
  readonly usage: KeyUsage;
  /** Where callers without a key are rejected. */
  readonly rejections: RejectionLimiter;
  readonly sessions: SealedSessions;
  readonly agent: Dispatcher;
  /** The protected-resource documents of upstreams. */
  readonly documents: DocumentCache;
  readonly telemetry: CallTelemetry;
  /** Has the table that serves now. */
  readonly routes: { readonly table: RouteTable };
  /** The configured public base, without a slash at its end. */
  readonly publicBase: string | undefined;
  /** The public base, from the request where none is configured. @param host the request's `Host` header */
  readonly publicUrl: (host: string | undefined) => string;
}

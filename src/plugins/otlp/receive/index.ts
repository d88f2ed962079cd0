/**
 * The doors of the receiver: `http.ts` (OTLP/HTTP) and `grpc.ts` (OTLP/gRPC, in the bounds of `grpc-bounds.ts`; with a
 * client certificate: `mtls.ts`), both before `receiver.ts`, which judges the key before anything is read, bounds the
 * memory, and words the answers.
 *
 * Imports core and this plugin's intake; `@grpc/grpc-js` is loaded when the gRPC door opens.
 */
export { Budget } from './budget.ts';
export { grpcListener } from './grpc.ts';
export { otlpErrorBody, otlpRoutes } from './http.ts';
export { mtlsListener } from './mtls.ts';
export { Receiver } from './receiver.ts';

import { stringify } from 'yaml';

interface Shape {
  readonly tokens?: readonly string[];
  readonly exporters?: Readonly<Record<string, unknown>>;
  readonly isEnforced?: boolean;
}

/** An effective collector config of the form that the UI sends. */
export function effectiveYaml({ tokens = [], exporters = {}, isEnforced = true }: Shape): string {
  const listener = (endpoint: string) => ({
    endpoint,
    ...(isEnforced && { auth: { authenticator: 'bearertokenauth/hyperdx' } }),
  });
  const all = { clickhouse: { endpoint: 'tcp://db:9000' }, debug: {}, ...exporters };
  const pipeline = { receivers: ['otlp/hyperdx'], exporters: Object.keys(all) };
  const config = {
    extensions: { 'bearertokenauth/hyperdx': { scheme: '', tokens }, health_check: null },
    receivers: {
      'otlp/hyperdx': {
        protocols: { grpc: listener('0.0.0.0:4317'), http: listener('0.0.0.0:4318') },
      },
    },
    exporters: all,
    service: {
      extensions: ['bearertokenauth/hyperdx', 'health_check'],
      pipelines: { traces: pipeline, metrics: pipeline, 'logs/in': pipeline },
    },
  };
  // What a program writes has no aliases, and ours are refused.
  return stringify(config, { aliasDuplicateObjects: false });
}

import { type ErrorEntry, entry } from '../entry.ts';

/** Of the MCP gateway. */
export const gatewayErrors = {
  HF_GATEWAY_ROUTE: entry(
    500,
    'The route can not be served: {variable}: {reason}.',
    'Correct it; the other routes go on meanwhile, and `holdfast gateway routes` lists them all.',
  ),
} as const satisfies Record<string, ErrorEntry>;

/**
 * The event log as an MCP server behind the gateway: an agent finds the cause of an incident with it. Each tool is a
 * question that an operator asks by `holdfast log` and `holdfast replay`, by the same code. Read-only; the SDK and the
 * tools are loaded with the first request.
 */
import { z } from 'zod';
import { mcpRoutes } from '../../core/contracts/mcp-routes.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { IncidentsError } from './errors.ts';

/** What the gateway waits beyond the deadline of an answer, milliseconds. */
const MARGIN_MS = 5_000;

/**
 * The plugin `incidents`: the event log as an MCP server, for agents that look for a cause.
 *
 * @example incidents({ deadlineMs: 60_000 })
 * @public
 */
export const incidents = definePlugin({
  name: 'incidents',
  about: {
    area: 'MCP gateway',
    what: 'the event log as an MCP server, for agents that look for a cause',
    docs: 'guides/incidents-by-agent.md',
  },
  options: z.strictObject({
    /** By when an answer must be there, milliseconds. */
    deadlineMs: z.int().min(1_000).max(600_000).default(30_000),
  }),
  errors: IncidentsError,
  onFailure: 'continue',
  start: (services, { deadlineMs }) => {
    const loaded = async () => {
      const [{ incidentServer }, { Questions }] = await Promise.all([
        import('./server.ts'),
        import('./tool.ts'),
      ]);
      const questions = new Questions(services, deadlineMs);
      return () => incidentServer(questions);
    };
    let make: ReturnType<typeof loaded> | undefined;
    return {
      server: async () => {
        make ??= loaded();
        return (await make)();
      },
    };
  },
  register(context, { deadlineMs }) {
    context.contribute(mcpRoutes, ({ server }) => ({
      name: 'incidents',
      onDemand: true,
      server,
      timeoutMs: deadlineMs + MARGIN_MS,
    }));
  },
});

/** The server of the official conformance suite as a program. */
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { conformanceServer } from './conformance-server.ts';

await conformanceServer().connect(new StdioServerTransport());

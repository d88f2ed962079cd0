/** The same server as a program on its standard input and output. */
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { echoServer } from './echo-server.ts';

serveStdio(echoServer);

/** Holds a data folder and serves a control socket on which one answer never comes; says `ready`. */
import { createServer } from 'node:http';
import { controlSocket } from '../../src/core/host/http/addresses.ts';
import { lockDataDir } from '../../src/core/kernel/log/lock.ts';

const dataDir = process.argv[2] as string;
process.once('exit', lockDataDir(dataDir)); // what nobody refers to is closed
createServer((asked, answer) => {
  if (asked.method === 'POST') console.log('asked');
  else answer.writeHead(404).end();
}).listen(controlSocket(dataDir), () => console.log('ready'));

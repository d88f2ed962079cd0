/**
 * Verifies the log of a folder in a process of its own; prints how many records a second of
 * processor time, and how much memory it ever held.
 */
import { SqliteReader } from '../../src/core/kernel/log/sqlite-reader.ts';
import { verifyLog } from '../../src/core/kernel/replay/verify-log.ts';
import { leg } from './log.ts';

const reader = new SqliteReader(process.argv[2] ?? '');
const before = process.cpuUsage();
const { records, divergence } = verifyLog(reader, new Map([[leg.type, leg]]));
if (divergence) throw new Error(`diverged at ${divergence.record.seq}`);
const { user, system } = process.cpuUsage(before);
const rate = records / ((user + system) / 1e6);
console.log(JSON.stringify({ records, rate, maxRssMb: process.resourceUsage().maxRSS / 1024 }));

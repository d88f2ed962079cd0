import type { StoppedReports } from '../../core/host/plugin/definition.ts';
import { stoppedTransaction } from './embedded/pending-transaction.ts';

/** What `holdfast status` shows of the router while no instance runs. */
export const stoppedReports: StoppedReports = { transaction: stoppedTransaction };

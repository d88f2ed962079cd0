import type { Bus } from '../../../bus/bus.ts';
import { jumpsOf } from '../../kernel/clock-jumps.ts';
import type { Json } from '../../kernel/json.ts';
import { CLOCK } from '../../kernel/log/record.ts';
import { SqliteReader } from '../../kernel/log/sqlite-reader.ts';
import { HostError } from '../errors/host-error.ts';
import { BackgroundCheck } from '../integrity/background-check.ts';
import type { DataCheckResult } from '../integrity/findings.ts';
import type { RuntimeServices } from '../plugin/host.ts';
import { AutomaticRetention } from '../retention/automatic.ts';
import { storageFact } from '../retention/growth.ts';
import { DiskReserve } from '../retention/reserve.ts';
import { archiveFolder, noteSettings, type RetentionSettings } from '../retention/settings.ts';
import { WitnessSender } from '../witness/sender.ts';
import { type WitnessSettings, witnessPath } from '../witness/settings.ts';
import { openWitness } from '../witness/witness.ts';

/** How a data folder is looked after. */
export interface UpkeepSettings {
  readonly dataDir: string;
  /** Old records are archived as it says; never when absent. */
  readonly retention?: RetentionSettings | undefined;
  /** Where the signed heads of the log go; nowhere when absent. */
  readonly witness?: WitnessSettings | undefined;
  /** Room on the disk that is kept for the log, bytes; none when absent. */
  readonly reserveBytes?: number | undefined;
  /** Files of the folder that plugins write over. */
  readonly overwritten: readonly string[];
}

/** What it needs of the runtime besides its services. */
export interface UpkeepHost {
  /** Publishes alerts of this host. */
  readonly publisher: Pick<Bus, 'publish'>;
  readonly addFact: (name: string, report: () => Json) => void;
  /** A step of the stop; the last one given comes first. */
  readonly onStop: (step: () => unknown) => void;
}

/** Looks after the data folder while a runtime runs: checks it, archives old records, keeps room for the log, and sends its heads. */
export class DataUpkeep {
  readonly #settings: UpkeepSettings;
  #check: BackgroundCheck | undefined;
  #witness: WitnessSender | undefined;

  constructor(settings: UpkeepSettings) {
    this.#settings = settings;
  }

  /** Begins all of it, each part with its fact for health pages. */
  start(services: RuntimeServices, host: UpkeepHost): void {
    const { dataDir, retention, witness, overwritten } = this.#settings;
    const archives = retention?.folder ?? archiveFolder(dataDir);
    const file = witness && witnessPath(witness);
    const place = file === undefined ? {} : { witness: file };
    const check = new BackgroundCheck({ dataDir, archives, overwritten, ...place }, services);
    this.#check = check;
    host.addFact('data', () => check.fact());
    const kept = retention ?? { folder: archives };
    noteSettings(dataDir, kept);
    const reader = new SqliteReader(dataDir);
    const jumps = () => jumpsOf(services.actors.snapshot(CLOCK.actor));
    let automatic: AutomaticRetention | undefined;
    host.addFact('storage', () =>
      storageFact(reader, dataDir, kept, services.clock.now(), jumps(), automatic?.problem),
    );
    host.onStop(() => reader.close());
    host.onStop(() => check.stop());
    this.#sendHeads(services, host);
    this.#reserveDisk(services, host);
    if (!retention) return;
    automatic = new AutomaticRetention(services, retention);
    const ended = automatic;
    host.onStop(() => ended.stop());
  }

  /** Checks the folder now. @throws HF_DATA_CHECK it cannot be checked */
  async check(): Promise<DataCheckResult> {
    if (!this.#check) throw new HostError('HF_DATA_CHECK', { reason: 'the instance is still starting' });
    return this.#check.run();
  }

  /** Sends the witness the last head of the log, which is closed. */
  async sendLastHead(): Promise<void> {
    await this.#witness?.finish();
  }

  #sendHeads(services: RuntimeServices, { publisher, addFact, onStop }: UpkeepHost): void {
    const { witness, dataDir } = this.#settings;
    if (!witness) return;
    const sender = new WitnessSender(openWitness(witness), dataDir, { ...services, bus: publisher });
    this.#witness = sender;
    addFact('witness', () => sender.fact());
    onStop(() => sender.stop());
  }

  #reserveDisk(services: RuntimeServices, { publisher, addFact, onStop }: UpkeepHost): void {
    const { reserveBytes, dataDir } = this.#settings;
    if (reserveBytes === undefined) return;
    const reserve = new DiskReserve(dataDir, reserveBytes, { ...services, bus: publisher });
    addFact('reserve', () => reserve.fact());
    onStop(() => reserve.stop());
  }
}

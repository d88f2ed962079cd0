import type { Inheritance } from '../kernel/actors/adoption.ts';
import type { Json } from '../kernel/json.ts';
import { defineToken, type Token } from './token.ts';

// How several hosts are one system (docs/cluster.md). The plugin `cluster` provides it where a NATS server is configured;
// without it nothing of this exists, and every host is alone.

/** Who may carry out the effects of a singleton, until when. */
export interface Lease {
  /** Name of the singleton, e.g. `reconciler`. */
  readonly singleton: string;
  /** Says which of two holders came later: `<incarnation of the ledger>:<number>`, compared by the number. */
  readonly token: string;
  /** By `Clock.monotonic` of this process, milliseconds: from then on nothing may be done in its name. Renewals move it. */
  deadline(): number;
}

/** Work that runs on one host at a time: the plugins that name the same singleton. */
export interface Singleton {
  readonly name: string;
  /** Types of its actors. */
  readonly actorTypes: readonly string[];
  /** Versions of their machines here, by type. */
  readonly machines: Readonly<Record<string, number>>;
  /**
   * Begins the work: takes the actors over, starts the plugins, and takes up what was left open.
   *
   * @param inheritance absent when this host held it last, or nobody ever did
   */
  begin(lease: Lease, inheritance?: Inheritance): Promise<void>;
  /**
   * Ends the work. When it resolves, no effect of it is under way any more, and its actors take no more events. Called again
   * meanwhile without patience, it interrupts at once.
   *
   * @param reason recorded, e.g. `the lease ran out`
   * @param patienceMs how long effects under way may take to come to their end, milliseconds; 0 unless set. None begins meanwhile:
   * the next holder takes those up. Only while the lease goes on being renewed
   */
  end(reason: string, patienceMs?: number): Promise<void>;
}

/** A message of the bus on its way to other hosts. */
export interface HostMessage {
  /** Name of the topic. */
  readonly topic: string;
  readonly payload: Json;
  readonly correlation: string;
  /** The record of the sending host that led to it. */
  readonly cause?: number | undefined;
}

/** A message as it arrives. */
export interface ArrivedMessage extends HostMessage {
  /** The host that sent it: this one, too. */
  readonly from: string;
  /** Its place among all messages to every host; absent for one to a holder alone. */
  readonly order?: number | undefined;
  /** When the server stored it, epoch milliseconds by the server's clock: the same for every host. Absent without an order. */
  readonly sentAt?: number | undefined;
  /** The singleton that it is for; absent for one to every host. */
  readonly singleton?: string | undefined;
}

/** How this host stands to the others, for decisions: a snapshot, cheap to read. */
export interface ClusterStanding {
  /** Hosts that were heard of within 10 s, this one included; while it is cut off, within the 10 s before. */
  readonly hosts: number;
  /** Milliseconds since this host last proved that it is connected to a quorum. */
  readonly silentMs: number;
  /** It has been silent for more than 2 s, or is behind: what others changed since may be unknown here. */
  readonly isIsolated: boolean;
  /**
   * It was away and is not any more, stood still and has just woken, or was started, and has not read yet what the others said
   * meanwhile: for so long it does not even act on what it knew.
   */
  readonly isBehind: boolean;
  /** Milliseconds since it noticed that messages of others are lost to it; absent when none were. */
  readonly missedMs?: number;
}

/** What the other hosts answered to a question. */
export interface Answers {
  /** At most one of each host. */
  readonly answers: readonly { readonly host: string; readonly answer: Json }[];
  /**
   * Hosts that may live and did not answer, or could not, by name: what they know is unknown. Who knows nothing of it has answered.
   */
  readonly unanswered: readonly string[];
}

/** One system of several hosts. */
export interface Cluster {
  /** Name of the cluster: subjects and streams begin with it. */
  readonly name: string;
  /** Name of this host in it. */
  readonly host: string;
  /**
   * A key that all hosts of the cluster derive alike.
   *
   * @param purpose what it is for, e.g. `gateway session`
   * @returns 32 bytes
   */
  key(purpose: string): Buffer;
  standing(): ClusterStanding;
  /**
   * Hears of what arrives from now on. Called once, by the runtime, before anything is sent.
   *
   * @param deliver resolves when what the message led to was decided here; while the log has no room, it waits. Until then the message
   * does not count as taken, and the next one waits. Rejects with HF_PLUGIN_ELSEWHERE or HF_ACTOR_ELSEWHERE when it is for a singleton that
   * does not run here (any more, or yet): its sender tries the holder of then; with HF_PLUGIN_MESSAGE when this host does not understand
   * it: one to every host counts as missed
   */
  onArrived(deliver: (message: ArrivedMessage) => Promise<void>): void;
  /** Lets this host compete for singletons until the plugin stops. Called once, when everything else has started. */
  compete(singletons: readonly Singleton[]): void;
  /** The host that holds a singleton, as far as this one knows. */
  holderOf(singleton: string): string | undefined;
  /** Has every host deliver a message, this one too, all in the same order. @throws HF_CLUSTER_ISOLATED it cannot be sent now */
  toEveryHost(message: HostMessage): Promise<void>;
  /** Has the holder of a singleton deliver a message. It waits through a takeover, within bounds. @throws HF_CLUSTER_UNDELIVERED */
  toHolder(singleton: string, message: HostMessage): Promise<void>;
  /** Resolves when a record of this host stands on its stream, too. Rejects when the plugin stops. */
  mirrored(seq: number): Promise<void>;
  /**
   * Asks all other hosts something and gathers what they answer in time.
   *
   * @param question its name, e.g. `gateway.approval`
   * @param timeoutMs how long to wait
   */
  ask(question: string, body: Json, timeoutMs: number): Promise<Answers>;
  /** Answers such questions of other hosts; undefined says that this host knows nothing of it, a throw that it cannot say. */
  onAsked(
    question: string,
    answer: (body: Json, from: string) => Json | undefined | Promise<Json | undefined>,
  ): void;
  /** Figures that every beat of this host carries, e.g. how many calls are open by key; kept small: all of them together have 32 KiB, and what is too much is left out. */
  announce(name: string, figures: () => Json): void;
  /**
   * What hosts announced last under a name: the others as they were heard, while this host is cut off as they were before; this one as a quorum
   * of the servers has it, and not at all when none took its beats for 2 s: the others may have heard them or not.
   */
  announced(name: string): ReadonlyMap<string, Json>;
}

/** Provided by the plugin `cluster`, where it is configured. */
export const ClusterToken: Token<Cluster> = defineToken('cluster');

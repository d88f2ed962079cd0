import type { EventId, EventStore, JSONRPCMessage, StreamId } from '@modelcontextprotocol/server';

/** Events of one session that are kept, and their longest text together, characters. */
const MOST_EVENTS = 1_000;
const MOST_TEXT = 4 * 1024 * 1024;

/** The longest text of all sessions of a server together, characters. */
const MOST_TEXT_OF_ALL = 64 * 1024 * 1024;

/** What the memories of all sessions of a server hold together. */
export class EventBudget {
  /** The one that was silent for longest is first. */
  readonly #memories = new Map<EventMemory, number>();
  #text = 0;

  /** Takes down how much a memory holds; the others that were silent for longest forget theirs for it. */
  set(memory: EventMemory, text: number): void {
    this.#text += text - (this.#memories.get(memory) ?? 0);
    this.#memories.delete(memory);
    if (text > 0) this.#memories.set(memory, text);
    for (const other of this.#memories.keys()) {
      if (this.#text <= MOST_TEXT_OF_ALL) break;
      if (other !== memory) other.clear();
    }
  }
}

interface KeptEvent {
  readonly stream: StreamId;
  readonly text: string;
}

/** The newest events of a session's streams, for a client that takes one up again where it broke off. */
export class EventMemory implements EventStore {
  readonly #events = new Map<EventId, KeptEvent>();
  readonly #budget: EventBudget;
  #last = 0;
  #text = 0;

  constructor(budget: EventBudget) {
    this.#budget = budget;
  }

  /** Forgets all. */
  clear(): void {
    this.#events.clear();
    this.#text = 0;
    this.#budget.set(this, 0);
  }

  async storeEvent(stream: StreamId, message: JSONRPCMessage): Promise<EventId> {
    this.#last += 1;
    const id = `${stream}_${this.#last}`;
    const text = JSON.stringify(message);
    this.#events.set(id, { stream, text });
    this.#text += text.length;
    for (const [oldest, event] of this.#events) {
      if (this.#events.size <= MOST_EVENTS && this.#text <= MOST_TEXT) break;
      this.#events.delete(oldest);
      this.#text -= event.text.length;
    }
    this.#budget.set(this, this.#text);
    return id;
  }

  async getStreamIdForEventId(id: EventId): Promise<StreamId | undefined> {
    return this.#events.get(id)?.stream;
  }

  /** @throws RangeError the event is not kept any more, so what came behind it is not known */
  async replayEventsAfter(
    last: EventId,
    { send }: { send: (id: EventId, message: JSONRPCMessage) => Promise<void> },
  ): Promise<StreamId> {
    const from = this.#events.get(last);
    if (!from) throw new RangeError('the event is not kept any more');
    let behind = false;
    for (const [id, { stream, text }] of this.#events) {
      if (behind && stream === from.stream) await send(id, JSON.parse(text));
      behind ||= id === last;
    }
    return from.stream;
  }
}

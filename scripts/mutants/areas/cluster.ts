import { type Area, noticedBy } from '../mutation.ts';

/** Which host does what, and what it says of that. */
const area: Area = {
  sources: [
    'src/cli/log/hosts.ts',
    'src/core/host/operations/signs-of-life.ts',
    'src/core/host/runtime/routes.ts',
    'src/core/host/runtime/singleton-work.ts',
    'src/plugins/cluster/',
  ],
  mutations: [
    ...noticedBy(
      ['cluster/messages/holder', 'cluster/messages/outgoing', 'cluster/system'],
      [
        {
          breaks: 'C13: messages to a holder go one after the other',
          find: 'return together(this.#waiting);',
          put: 'return together(this.#waiting).slice(0, 1);',
        },
        {
          breaks: 'C13: a message to every host that was acknowledged and is not stored is never sent again',
          find: 'this.#options.clock.after(DELIVERED_MS, () => this.#doubt(entry));',
          put: '',
        },
        {
          breaks: 'C13: a host that has yet to read its message on a slow link sends it again and again',
          find: 'if ((stream()?.seen ?? 0) > order.seq) {',
          put: 'if (false) {',
        },
        {
          breaks: 'C13: messages behind one that its holder does not take now are taken before it',
          find: "if (first !== 'taken' && first !== 'failed') break;",
          put: '',
        },
        {
          breaks: 'C13: a holder takes a message each time that it is asked',
          find: 'if (known) return known;',
          put: '',
        },
        {
          breaks: 'C13: a question that a stranger repeats is answered that it failed',
          find: "if (problem === 'repeated') return;",
          put: '',
        },
        {
          breaks: 'C13: several answers of one host end a question that others have not answered',
          find: 'return others > 0 && found.size >= others;',
          put: 'return others > 0 && (before !== undefined || found.size >= others);',
        },
        {
          breaks: 'C13: what a host answers a question does not count when it failed to answer a copy before',
          find: '(!before || before.failed)',
          put: '!before',
        },
        {
          breaks: 'C13: a holder answers before its successor would know of a message',
          find: 'await this.#options.known();',
          put: '',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/nats/stream.test', 'cluster/messages/every-host', 'cluster/nats/link.test'],
      [
        {
          breaks: 'C13: a forged message on a stream is skipped and not counted',
          find: 'this.#link.countForged(subject, `$',
          put: 'void (subject, `$',
        },
        {
          breaks: 'C13: a forged message on a stream counts each time that it is read',
          find: 'if (this.#forgedPlaces.has(place)) return;',
          put: '',
        },
        {
          breaks: 'C13: of forged messages on streams every place is kept in memory',
          find: 'this.#forgedPlaces.delete(oldest)',
          put: 'undefined',
        },
      ],
    ),
    ...noticedBy(
      [
        'host/runtime/routes.test',
        'cluster/system',
        'cluster/messages/every-host',
        'cluster/messages/shared-',
        'cluster/messages/holder',
      ],
      [
        {
          breaks:
            'C13: a message of another host goes to the mailbox of a log without room, or is refused there',
          find: 'await this.#services.actors.whenFree();',
          put: '',
        },
        {
          breaks: 'C13: a message counts as taken before it is decided',
          find: 'await Promise.all(routes.map((route) => this.#deliverArrived(route, envelope, origin)));',
          put: 'for (const route of routes) void this.#deliverArrived(route, envelope, origin);',
        },
        {
          breaks: 'C13: what this host told every host is dropped here when its log has no room',
          find: '#deliver({ to, map }: Route, envelope: Envelope, origin?: Origin): Sent[] {',
          put: '#deliver({ to, map }: Route, envelope: Envelope, origin?: Origin): Sent[] { if (this.#isRefused(envelope)) return [];',
        },
        {
          breaks: 'C13: a message is noted as taken before it is durable',
          find: 'void log.whenDurable(log.lastSeq()).then(note, () => {});',
          put: 'note();',
        },
        {
          breaks: 'C13: a log that is closed before it took a message ends the process',
          find: 'void log.whenDurable(log.lastSeq()).then(note, () => {});',
          put: 'void log.whenDurable(log.lastSeq()).then(note);',
        },
        {
          breaks: 'C13: a state of another host does not wait for room in the log',
          find: 'await actors.whenFree();',
          put: '',
        },
        {
          breaks: 'C13: a host whose log takes nothing never stops',
          find: 'this.#interrupt();',
          put: '',
        },
        {
          breaks: 'C13: a message that was given up at the stop counts as taken',
          find: 'if (!(await this.#isDelivered(body, order, at))) return;',
          put: 'await this.#isDelivered(body, order, at);',
        },
        {
          breaks: 'C13: a message behind one that was given up at the stop is taken',
          find: 'if (this.#isStopped) return; if (message.seq',
          put: 'if (message.seq',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/leases/leases.test'],
      [
        {
          breaks: 'C13: a ledger that cannot be read for a whole lease is no trouble',
          find: 'if (!isForeign && now - this.#since < this.#ttlMs) return;',
          put: 'if (!isForeign) return;',
        },
        {
          breaks: 'C13: one failure with the ledger is a trouble',
          find: 'if (!isForeign && now - this.#since < this.#ttlMs) return;',
          put: '',
        },
        {
          breaks: 'C13: each failure with the ledger begins the lease of waiting anew',
          find: 'this.#since ??= now;',
          put: 'this.#since = now;',
        },
        {
          breaks: 'C13: a trouble with the ledger stays when it can be read again',
          find: 'this.#error = undefined; this.#lines.reset();',
          put: 'this.#lines.reset();',
        },
        {
          breaks: 'C13: what was read of the ledger once is known for ever',
          find: 'return this.#elapsed.monotonic() - this.#reader.readAt > this.#options.self.ttlMs;',
          put: 'return false;',
        },
        {
          breaks: 'C13: a host that can carry out nothing claims leases',
          find: 'this.#competitor.hinder(obstacle !== undefined);',
          put: '',
        },
        {
          breaks: 'C13: a host that can carry out nothing keeps what it has',
          find: 'for (const { singleton } of this.#competitor.held) void this.release(singleton, obstacle);',
          put: '',
        },
        {
          breaks: 'C13: a commit that is slow once costs a hand-over',
          find: 'if (obstacle === undefined || now - this.#ableAt < OBSTACLE_MS) return;',
          put: 'if (obstacle === undefined) return;',
        },
        {
          breaks: 'C13: a host that was at a standstill for a while once gives its work away each time',
          find: 'if (obstacle === undefined) this.#ableAt = now;',
          put: '',
        },
        {
          breaks: 'C13: work that did not end in time is released while it goes on',
          find: 'if (await this.#within(work, END_MS))',
          put: 'await this.#within(work, END_MS); if (true)',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/leases/leases.test'],
      [
        {
          breaks: 'C13: a host that others leave no place in the ledger tries without a pause',
          find: 'attempt < MOST_ATTEMPTS; attempt += 1) {',
          put: 'attempt < MOST_ATTEMPTS; ) {',
        },
        {
          breaks:
            'C13: a host that has read other messages than somebody claims before it has read them once more',
          find: 'while (!(await this.#read()) || this.#isForked)',
          put: 'while (!(await this.#read()))',
        },
        {
          breaks: 'C13: a host that never comes to the end of the ledger says nothing of it',
          find: "if (elapsed.monotonic() > end) throw new ClusterError('HF_CLUSTER_LEDGER_BUSY', { what: 'read' });",
          put: '{}',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/leases/leases.test'],
      [
        {
          breaks: 'C13: on a ledger that was made anew a host forgets how long the leases of others last',
          find: 'this.#longestTtlBeforeMs = this.#longestTtlMs;',
          put: '',
        },
      ],
    ),
    ...noticedBy(
      [
        'cluster/system',
        'cluster/messages/holder',
        'cluster/records',
        'cluster/takeover/handover',
        'cluster/mirror/fences.test',
      ],
      [
        {
          breaks: 'C13: a host that wakes with its machine takes what it knew before for new',
          find: 'const clock = new ElapsedClock(services.clock);',
          put: 'const { clock } = services;',
        },
        {
          breaks: 'C13: a message that its own host takes waits for the stream for ever',
          find: 'return await inTime(taken, `messages of this host for ${singleton}`, ATTEMPT_MS, clock);',
          put: 'return await taken;',
        },
        {
          breaks: 'C13: a takeover that is told while the log takes nothing holds up the mirroring',
          find: "log.status().state === 'frozen' || !(await this.#isDurable(seq))",
          put: '!(await this.#isDurable(seq))',
        },
        {
          breaks: 'C13: an event that cannot be recorded ends the process',
          find: "this.#services.logger.warn({ err: error }, 'cluster.not_recorded');",
          put: 'throw error;',
        },
        {
          breaks: 'C13: a singleton whose end cannot be recorded is released while its effects run',
          find: 'await ending; // whatever could be recorded: the lease is released after this turn',
          put: '',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/leases/ledger-stream'],
      [
        {
          breaks: 'C13: a ledger of the far future is competed in, and its tokens outrank all later ones',
          find: '> clock.now() + MOST_AHEAD_MS)',
          put: '> Number.POSITIVE_INFINITY)',
        },
        {
          breaks: 'C13: messages of strangers that were not read keep a host from the ledger',
          find: 'if (!this.#hasStrangers) return [after];',
          put: 'return [after];',
        },
        {
          breaks: 'C13: a host always expects few messages of strangers',
          find: 'const most = Math.min(2 * this.#between + 2, MOST_BETWEEN);',
          put: 'const most = 2;',
        },
        {
          breaks: 'C13: a message is stored in several places',
          find: 'after + most - index);',
          put: 'after + least + index);',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/leases/ledger.test'],
      [
        {
          breaks: 'C13: a message that came too late counts',
          find: "if (isLate) return 'late';",
          put: '',
        },
        {
          breaks: 'C13: a message of another history passes as one that came too late',
          find: 'const readBySender = isLate ? this.#chainAt(readTo) : before;',
          put: 'const readBySender = isLate ? undefined : before;',
        },
        {
          breaks: 'C13: a message that came too late says that the servers disagree',
          find: 'const readBySender = isLate ? this.#chainAt(readTo) : before;',
          put: 'const readBySender = before;',
        },
        {
          breaks: 'C13: a reader takes what may have come too late as counting',
          find: 'if (!this.isKnown && (!read || readTo < this.#first - 1))',
          put: 'if (!this.isKnown && !read)',
        },
        {
          breaks: 'C13: behind what may have come too late another one counts that did',
          find: "this.#first = seq + 1; return read ? 'late' : 'unreadable';",
          put: "return read ? 'late' : 'unreadable';",
        },
      ],
    ),
    ...noticedBy(
      ['cluster/takeover/handover.test'],
      [
        {
          breaks: 'C13: a release waits for the stream although the log takes nothing',
          find: 'if (patienceMs > 0 && !this.#isStopped && !isFrozen) await this.#sent(work);',
          put: 'if (patienceMs > 0 && !this.#isStopped) await this.#sent(work);',
        },
      ],
    ),
    ...noticedBy(
      ['host/runtime/singletons'],
      [
        {
          breaks: 'C13: work that begins while the log takes nothing cannot end',
          find: 'const states = await term.within(actors.takeUp(this.actorTypes, inheritance));',
          put: 'const states = await actors.takeUp(this.actorTypes, inheritance);',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/hosts.slow'],
      [
        {
          breaks: 'C13: a log that takes nothing is no obstacle',
          find: "return state === 'frozen' ? `its log takes nothing: ${reason}` : undefined;",
          put: 'return undefined;',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/operate/view'],
      [
        {
          breaks: 'C13: a host that leaves its work to others does not say why',
          find: 'obstacle === undefined ? [] :',
          put: 'true ? [] :',
        },
        {
          breaks: 'C13: a ledger that is away is no problem of health',
          find: '...(trouble && view.unknownSince === undefined ? [ledgerProblem(trouble, leases)] : []),',
          put: '',
        },
        {
          breaks: 'C13: who holds what is known although the ledger was not read',
          find: 'return isCutOff(parts) || parts.leases.isUnread;',
          put: 'return isCutOff(parts);',
        },
        {
          breaks: 'C13: a host that is behind is ready',
          find: 'return !isBehind && !(isIsolated && hosts > 1);',
          put: 'return !(isIsolated && hosts > 1);',
        },
        {
          breaks: 'C13: a host that is cut off is ready',
          find: 'return !isBehind && !(isIsolated && hosts > 1);',
          put: 'return !isBehind;',
        },
        {
          breaks: 'C13: a host that is alone is not ready without NATS',
          find: '!(isIsolated && hosts > 1)',
          put: '!isIsolated',
        },
        {
          breaks: 'C13: the lag of a host that is not heard is as it was',
          find: "...(state === 'there' && { lag }),",
          put: 'lag,',
        },
        {
          breaks: 'C13: an unknown lag is shown as a word of the program',
          find: "lag === undefined ? 'unknown' : String(lag)",
          put: 'String(lag)',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/operate/operations'],
      [
        {
          breaks: 'C13: a move that went elsewhere succeeds',
          find: 'if (to !== undefined && holder !== to)',
          put: 'if (false)',
        },
        {
          breaks: 'C13: a move waits for nobody who has to answer',
          find: 'if (!answers.some(({ host }) => host === from)) throw',
          put: 'if (false) throw',
        },
        {
          breaks: 'C13: a host is forgotten although others list it still',
          find: 'if (unanswered.length > 0) throw',
          put: 'if (false) throw',
        },
        {
          breaks: 'C13: a host that is cut off moves what it does not know of',
          find: 'if (lease.isUnknown) throw',
          put: 'if (false) throw',
        },
        {
          breaks: 'C13: a host that is cut off forgets one that may live',
          find: 'if (unknownSince !== undefined || leases.some(({ isUnknown }) => isUnknown))',
          put: 'if (false)',
        },
        {
          breaks: 'C13: a host that cannot read the ledger forgets one that may hold something',
          find: 'if (unknownSince !== undefined || leases.some(({ isUnknown }) => isUnknown))',
          put: 'if (unknownSince !== undefined)',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/system', 'cluster/mirror/faults'],
      [
        {
          breaks: 'C13: an older copy of a data folder stays in the cluster',
          find: "if (isCoded(error, 'HF_CLUSTER_OLD_FOLDER')) this.#leaveBecause(error);",
          put: '',
        },
        {
          breaks: 'C13: an older copy of a data folder makes a stream of its own',
          find: "isPruned(log, to) ? { kind: 'differs', reason, last } : { kind: 'ahead', from: begin, to, last }",
          put: "{ kind: 'differs', reason, last }",
        },
        {
          breaks: 'C13: a data folder that is older than the newest states makes a stream of its own',
          find: "return isPruned(log, seq) ? 'foreign' : { kind: 'ahead', from: seq, to: seq, last };",
          put: "return 'foreign';",
        },
        {
          breaks: 'C13: a host that pruned its log is taken for an older copy',
          find: 'return seq <= log.lastSeq() && log.hashBefore(seq + 1) === undefined;',
          put: 'return false;',
        },
        {
          breaks: 'C13: a host that has left competes again',
          find: 'if (this.#leaving !== undefined) return;',
          put: '',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/operate/checks'],
      [
        {
          breaks: 'C13: behind an empty address doctor asks another server than the one that it names',
          find: 'const link = await openLink({ ...options, servers: address });',
          put: "const link = await openLink({ ...options, servers: options.servers.split(',')[servers.findIndex((one) => one.address === address)] ?? '' });",
        },
        {
          breaks: 'C13: doctor says that the copies of streams that are not there are well',
          find: 'if (own.infos.length + own.unanswered.length === 0) return NO_STREAMS;',
          put: '',
        },
        {
          breaks: 'C13: doctor says that streams that are not there are set as needed',
          find: 'const { infos, unanswered } = await ownStreams(link, options); if (infos.length + unanswered.length === 0) return NO_STREAMS; const wrong',
          put: 'const { infos, unanswered } = await ownStreams(link, options); const wrong',
        },
        {
          breaks: 'C13: doctor counts the stream of its own checks',
          find: 'all.filter((stream) => stream !== checkStreamName(options))',
          put: 'all',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/takeover/succession'],
      [
        {
          breaks: 'C13: a host that was fenced and passed over is told of nothing',
          find: 'passedOver.push(left);',
          put: '',
        },
        {
          breaks: 'C13: who goes on from its own log tells nobody that it was passed over',
          find: 'if (!source && !hasBegun) return;',
          put: 'if (!source) return;',
        },
        {
          breaks: 'C13: states behind a fence of a tenure that never began count',
          find: 'const isNewest = isFirst && held === last; isFirst = false;',
          put: 'const isNewest = true; isFirst = false;',
        },
        {
          breaks: 'C13: a takeover behind a tenure that never began reads the whole stream',
          find: 'isFirst: isNewest, mirror: held.mirror,',
          put: 'isFirst: isNewest,',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/mirror/strangers-streams', 'cluster/mirror/newest-states'],
      [
        {
          breaks: 'C13: forged states hide those that the ledger tells of',
          find: 'const told = mirror?.incarnation === String(incarnation) ? mirror.states : undefined;',
          put: 'const told: number | undefined = undefined;',
        },
        {
          breaks: 'C13: a host puts no states behind the messages of strangers',
          find: 'Math.max(seq - this.#statesSent.seq, last - this.#statesSent.streamSeq) >= STATES_EVERY',
          put: 'seq - this.#statesSent.seq >= STATES_EVERY',
        },
        {
          breaks: 'C13: a host that is idle notices no messages of strangers',
          find: 'this.#askForStates(Math.max(writer.last, watch.last));',
          put: 'this.#askForStates(writer.last);',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/system', 'cluster/leases/ledger.test'],
      [
        {
          breaks: 'C13: a host does not say in the ledger where its states stand',
          find: '...(states !== undefined && { states })',
          put: '',
        },
        {
          breaks: 'C13: of a host that was restarted the ledger knows how far its log was long ago',
          find: '...(known && { mirror: known })',
          put: '',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/mirror/strangers-streams'],
      [
        {
          breaks: 'C13: the id of the next message of a log can be known before it is sent',
          find: '${expectedLast}.${randomUUID()}`',
          put: '${expectedLast}`',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/mirror/fences.test', 'cluster/mirror/orphans', 'cluster/records'],
      [
        {
          breaks: 'C13: an orphaned branch is told before its end is saved',
          find: 'await this.#orphans.saved(); const { untold } = this.#orphans;',
          put: 'const { untold } = this.#orphans;',
        },
        {
          breaks: 'C13: a branch whose end could not be saved is never told',
          find: 'if (this.#orphans.isNew(fence)) await this.#end(fence, incarnation); await this.#tell();',
          put: 'if (!this.#orphans.isNew(fence)) return; await this.#end(fence, incarnation); await this.#tell();',
        },
        {
          breaks: 'C13: each start tells of all branches again',
          find: 'return branches.some((branch) => isOf(branch, one)) ? told : one;',
          put: 'return one;',
        },
        {
          breaks: 'C13: a branch that is told again is recorded twice',
          find: 'if (branches.some((one) => one.from === after + 1 && one.to === to)) return;',
          put: '',
        },
        {
          breaks: 'C13: a fence counts as kept although it could not be saved',
          find: 'if (!known) { const hash',
          put: 'if (known) return; { const hash',
        },
        {
          breaks: 'C13: a branch begins with what an earlier one holds',
          find: 'for (let one = holding(after + 1); one?.to !== undefined; one = holding(after + 1)) after = one.to;',
          put: '',
        },
        {
          breaks: 'C13: records of a later branch are counted in an earlier one, too',
          find: 'if (isHeld(seq)) continue;',
          put: '',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/mirror/commands'],
      [
        {
          breaks: 'C13: a list of all hosts does not say that one of them has more',
          find: 'hasMore ||= more;',
          put: '',
        },
        {
          breaks: 'C13: a list of all hosts does not say that it dropped some',
          find: 'hasMore = waiting.shift() !== undefined',
          put: 'waiting.shift()',
        },
        {
          breaks: 'C13: a list of all hosts always says that records are left out',
          find: 'if (hasMore && !json)',
          put: 'if (!json)',
        },
        {
          breaks: 'C13: an empty list of all hosts says nothing',
          find: 'else if (waiting.length === 0 && Number.isFinite(limit) && !json)',
          put: 'else if (false)',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/mirror/strangers-streams'],
      [
        {
          breaks: 'C13: a host begins a stream that somebody else filled',
          find: "if (standing.last - standing.first >= MOST_BEFORE_BEGIN) return 'somebody else filled it';",
          put: '',
        },
        {
          breaks: 'C13: a stream whose subjects a stranger has taken is tried for ever',
          find: 'if (apiCode(error) !== SUBJECTS_OVERLAP) return',
          put: 'return',
        },
        {
          breaks: 'C13: a stream of a stranger is tried for ever',
          find: 'if (isOurs) throw error;',
          put: 'throw error;',
        },
        {
          breaks: 'C13: streams that nobody with the key began are the log of a host',
          find: 'if (await isBegun(streams, host, incarnation)) begun.push(incarnation);',
          put: 'begun.push(incarnation);',
        },
        {
          breaks: 'C13: the newest stream is whichever has the highest number',
          find: 'if (await isBegun(streams, host, incarnation)) return incarnation;',
          put: 'return incarnation;',
        },
        {
          breaks: 'C13: large messages of strangers are asked for all at once',
          find: 'this.#size = Math.max(1, Math.min(2 * this.#size, fitting, MOST_MESSAGES));',
          put: 'this.#size = 256;',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/nats/slow-link', 'cluster/nats/pace', 'cluster/nats/asked-again'],
      [
        {
          breaks: 'C13: a link on which large messages come slowly is closed',
          find: 'this.#isBehind = !isAnswered && received() - before > LARGE_BYTES && looks < MOST_BEHIND;',
          put: 'this.#isBehind = false;',
        },
        {
          breaks: 'C13: a part of a message is no sign of life',
          find: 'call.socket?.bytesRead ?? connection.stats().inBytes',
          put: 'connection.stats().inBytes',
        },
        {
          breaks: 'C13: a link over which only the beats of others come is never closed',
          find: 'this.#isBehind = !isAnswered && received() - before > LARGE_BYTES && looks < MOST_BEHIND;',
          put: 'this.#isBehind = received() > before;',
        },
        {
          breaks: 'C13: as much is on its way over a slow link as over a fast one',
          find: 'const isSlow = this.#clock.monotonic() - from > SLOW_MS;',
          put: 'const isSlow = false;',
        },
        {
          breaks: 'C13: a question is asked again while its answer is on its way',
          find: 'isBehind() ? wait() : attempt()',
          put: 'attempt()',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/mirror/command-logs'],
      [
        {
          breaks: 'C13: beats of the past, sent again, keep a host from being adopted',
          find: 'isRunning: (host) => hostRuns({ link, clock: systemClock, name: options.name, host }),',
          put: 'isRunning: (host) => new Promise((resolve) => { link.subscribe(`hf.${options.name}.beat.${host}`, () => resolve(true)); systemClock.after(2_500, () => resolve(false)); }),',
        },
        {
          breaks: 'C13: a host that runs is adopted when the connection is lost while it is asked',
          find: 'if (link.connected() === over) return false;',
          put: 'return false;',
        },
        {
          breaks: 'C13: a host that runs is adopted',
          find: 'if (answers.flat().some(isOf)) return true;',
          put: '',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/mirror/stale-leader', 'cluster/presence/name-claim', 'cluster/system'],
      [
        {
          breaks: 'C13: a stream of which a server that is cut off knows nothing is replaced',
          find: 'await this.#proveDeleted(incarnation);',
          put: '',
        },
        {
          breaks: 'C13: a stream that the servers know again is replaced',
          find: 'if (!(await this.#isNamed(incarnation))) return;',
          put: 'return;',
        },
        {
          breaks: 'C13: a stream that ends too early, as one server says, is replaced',
          find: "await stream.append('', { id, headers, expectedLast: standing.last }); await confirm(stream, { seq: standing.last + 1, id }, clock);",
          put: '',
        },
        {
          breaks: 'C13: a stream is replaced without a question for the name',
          find: 'left = writable; await this.#options.nameIsOurs();',
          put: 'left = writable;',
        },
        {
          breaks: 'C13: a name is its own although its question did not come back',
          find: 'if (!answers.every(({ isHeard }) => isHeard) || link.connected() !== over) {',
          put: 'if (false) {',
        },
        {
          breaks: 'C13: of two processes of one name the one keeps it whose wall clock is behind',
          find: 'if (Math.abs(longerMs) > EQUALLY_OLD_MS) return longerMs > 0;',
          put: '',
        },
        {
          breaks: 'C13: of two processes that began nearly together, delays decide which one keeps the name',
          find: 'const EQUALLY_OLD_MS = 3_000;',
          put: 'const EQUALLY_OLD_MS = 0;',
        },
        {
          breaks: 'C13: who answers later than at once has no name',
          find: 'return ask(withinMs - index * apartMs);',
          put: 'return ask(NAME_MS);',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/nats/header-bytes', 'cluster/nats/stream.test'],
      [
        {
          breaks: 'C13: headers of any size are decoded',
          find: 'if (bytes > MOST_HEADER_BYTES) return undefined;',
          put: '',
        },
        {
          breaks: 'C13: a client that does not tell the size of headers is not refused at the start',
          find: "if (headerBytes(message) !== subject.length + headers.length) throw unfit('size()');",
          put: '',
        },
        {
          breaks: 'C13: a stored message whose headers have no known size counts as one without any',
          find: "if (!data) throw unfit('smr');",
          put: 'if (!data) return 0;',
        },
      ],
    ),
    ...noticedBy(
      ['cluster/presence/beats'],
      [
        {
          breaks: 'C13: a stranger can write to the place of a proof before it is sent',
          find: 'const subject = `${subjectOf(name, number)}.${randomUUID()}`;',
          put: 'const subject = `${subjectOf(name, number)}.0`;',
        },
        {
          breaks: 'C13: the newest message of a subject is taken for the proof',
          find: 'await this.#stored({ seq: from, next_by_subj: subject });',
          put: 'await this.#stored({ last_by_subj: subject });',
        },
        {
          breaks: 'C13: an acknowledgement proves that a quorum is reached',
          find: 'if (!(await inTime(this.#isThere(subject), stream.name, withinMs, clock))) throw refusal;',
          put: '',
        },
      ],
    ),
    ...noticedBy(
      ['core/host/control-client'],
      [
        {
          breaks: 'C13: a command to an instance that is frozen waits for ever',
          find: 'if (unanswered === SILENT_AFTER) return onSilent((SILENT_AFTER * TICK_MS) / 1_000);',
          put: '',
        },
        {
          breaks: 'C13: a command whose work takes long is cut off',
          find: 'if (unanswered === ASK_AFTER) ask();',
          put: '',
        },
      ],
    ),
  ],
  automatic: {
    sources: ['src/plugins/cluster/leases/ledger.ts', 'src/plugins/cluster/leases/competitor.ts'],
    tests: ['cluster/leases/ledger.test', 'cluster/leases/leases.test', 'cluster/leases/model.test'],
  },
};

export default area;

import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of several hosts that are one system (docs/cluster.md). */
export const ClusterError = defineErrors({
  HF_CLUSTER_UNREACHABLE: {
    status: 503,
    what: 'There is no connection to NATS: {reason}.',
    remedy: 'Check that the servers of HOLDFAST_NATS_URL run and let this host in; it goes on trying.',
  },
  HF_CLUSTER_TIMEOUT: {
    status: 504,
    what: 'NATS gave no answer about {what} within {ms} ms.',
    remedy:
      'Nothing, if it passes: an election takes up to 12 s. Else look at the servers with `holdfast doctor cluster`.',
  },
  HF_CLUSTER_CLIENT: {
    status: 500,
    what: 'The client of NATS that is installed is not the one that Holdfast was made for: it lacks `{lacks}`, by which headers that are too large are refused.',
    remedy: 'Install the packages as they are locked (`npm ci`).',
  },
  HF_CLUSTER_SIZE: {
    status: 413,
    what: 'A message of {bytes} bytes is larger than NATS takes ({most}).',
    remedy: 'Raise `max_payload` of the servers of NATS, or send less at once.',
  },
  HF_CLUSTER_BUSY: {
    status: 503,
    what: 'More than {most} messages to the stream {stream} wait for their acknowledgement.',
    remedy: 'Try again; if it stays, the servers of NATS are too slow for what this host records.',
  },
  HF_CLUSTER_STREAM_CONFLICT: {
    status: 409,
    what: 'The stream {stream} ends with message {last}, not with {expected} as the writer expected.',
    remedy: 'Nothing: the writer reads what was added and decides again.',
  },
  HF_CLUSTER_STREAM_UNKNOWN: {
    status: 504,
    what: 'Whether a message stands on the stream {stream} is not known: {reason}.',
    remedy: 'Nothing: the writer reads the end of the stream when NATS answers again.',
  },
  HF_CLUSTER_STREAM_UNAVAILABLE: {
    status: 503,
    what: 'The stream {stream} has no leader, or cannot be reached: {reason}.',
    remedy: 'Check that more than half of the servers of NATS run; it goes on trying.',
  },
  HF_CLUSTER_STREAM_FULL: {
    status: 507,
    what: 'The stream {stream} takes no more: {reason}.',
    remedy:
      'Raise `maxStreamBytes` where a stream is full though its host trims it; where the servers have no room for it, lower it, or give them more (`max_file_store`).',
  },
  HF_CLUSTER_STREAM_GONE: {
    status: 410,
    what: 'The stream {stream} is not the one that was opened: {reason}.',
    remedy: 'Find out who deleted it; the hosts fill a new one from their own logs.',
  },
  HF_CLUSTER_STREAM_REWOUND: {
    status: 409,
    what: 'The stream {stream} ends with message {last}, though message {seen} has stood on it.',
    remedy:
      'Look for a server of NATS that lost its disk or was set back; the hosts fill a new stream from their own logs.',
  },
  HF_CLUSTER_STREAM_GAP: {
    status: 500,
    what: 'The stream {stream} lacks message {seq}, between {first} and {last}.',
    remedy: 'Find out who deleted it; the hosts fill a new stream from their own logs.',
  },
  HF_CLUSTER_STREAM_DIFFERS: {
    status: 409,
    what: 'The stream {stream} has other settings than this host needs: {differences}.',
    remedy: 'Set it as named with `nats stream edit`, or delete it if nothing in it is needed.',
  },
  HF_CLUSTER_OLD_FOLDER: {
    status: 409,
    what: 'The stream {stream} holds records {from} to {to} of this host, which its log does not have: the data folder is an older copy, or the disk lost its newest records.',
    remedy:
      'Stop this host, keep the folder, and start it with an empty one: `holdfast start --adopt {host}`. Until then it goes on alone.',
  },
  HF_CLUSTER_STREAM_REFUSED: {
    status: 502,
    what: 'NATS refused a request about the stream {stream}: {reason} ({code}).',
    remedy: 'Fix what the sentence of NATS names; about permissions see docs/cluster.md.',
  },
  HF_CLUSTER_LEDGER: {
    status: 409,
    what: 'The stream {stream} is not the ledger of this cluster: {reason}.',
    remedy:
      'Give this cluster a name of its own (HOLDFAST_CLUSTER_NAME), or this host the key of the others (HOLDFAST_CLUSTER_KEY_FILE); delete the stream if nobody uses it.',
  },
  HF_CLUSTER_LEDGER_BUSY: {
    status: 503,
    what: 'Others write to the ledger of leases faster than this host can {what}.',
    remedy:
      'If `cluster status` counts messages that no host of the cluster sent, find the user of NATS who may publish `hf.<name>.ledger.>` without being a host, and take that right away. It goes on trying.',
  },
  HF_CLUSTER_ISOLATED: {
    status: 503,
    what: 'Message {id} to every host was not delivered within {ms} ms: {outcome}.',
    remedy:
      'Look at the connection to NATS with `holdfast cluster status`; what may still arrive, send again only if twice does no harm.',
  },
  HF_CLUSTER_UNDELIVERED: {
    status: 503,
    what: 'The holder of {singleton} did not take a message within {ms} ms: {reason}.',
    remedy: 'See who holds it with `holdfast cluster leases`; then do again what led to the message.',
  },
  HF_CLUSTER_MESSAGE_SIZE: {
    status: 413,
    what: 'A message about {topic} has {bytes} bytes; to other hosts it may have {most}.',
    remedy: 'Send less at once, or the place where the rest can be read.',
  },
  HF_CLUSTER_NAME_TAKEN: {
    status: 409,
    what: 'Another process is the host {host} of this cluster, since {since}.',
    remedy: 'Give each host a name of its own (HOLDFAST_CLUSTER_HOST), or end the other process.',
  },
  HF_CLUSTER_NAME_UNKNOWN: {
    status: 503,
    what: 'Whether another process is the host {host} of this cluster is not known: {reason}.',
    remedy:
      'Nothing, if it passes: it asks again, and leaves the stream of {host} as it is until then. Else look at the servers with `holdfast doctor cluster`.',
  },
  HF_CLUSTER_VERSION: {
    status: 409,
    what: 'The host {host} runs version {theirs}, this one {version}: they do not understand each other.',
    remedy: 'Bring the older one to a version at most one behind.',
  },
  HF_CLUSTER_OUTDATED: {
    status: 409,
    what: 'The work of {singleton} was done last by release {theirRelease}, with version {theirs} of the machine of {type}; this host has release {release}, with version {version}.',
    remedy:
      'Update this host to release {theirRelease}; until then it leaves {singleton} to hosts that have it.',
  },
  HF_CLUSTER_STOPPED: {
    status: 503,
    what: 'This host stopped before the record was on its stream.',
    remedy: 'Nothing: what waited for it is taken up at the next start, or by the host that goes on.',
  },
  HF_CLUSTER_LOG_GAP: {
    status: 500,
    what: 'The log of this host cannot go to NATS: a repair could not save records {from} to {to}, and no state was saved since.',
    remedy: 'Wait for the next saved states (every 10,000 records, and at a stop), or restart this host.',
  },
  HF_CLUSTER_NO_LOG: {
    status: 404,
    what: 'NATS has no log of a host {host} in the cluster {cluster}.',
    remedy: 'Look at the names with `holdfast cluster hosts`.',
  },
  HF_CLUSTER_UNFILLED: {
    status: 409,
    what: 'The stream of {host} is being filled again: it ends with record {seq}, and up to record {to} effects may have run.',
    remedy:
      'Start that host and wait until its stream is whole; without it, what it did last is known from its own disk alone.',
  },
  HF_CLUSTER_SINGLETON: {
    status: 404,
    what: 'No host competes for {singleton}; known are: {known}.',
    remedy: 'See what is held with `holdfast cluster leases`.',
  },
  HF_CLUSTER_HOST: {
    status: 409,
    what: 'The host {host} cannot take it over; able to are: {known}.',
    remedy: 'Name a host that is there and not drained: `holdfast cluster hosts`.',
  },
  HF_CLUSTER_HOST_UNKNOWN: {
    status: 404,
    what: 'No host {host} was ever heard of here; known are: {known}.',
    remedy: 'Name one of them: `holdfast cluster hosts`.',
  },
  HF_CLUSTER_MOVE: {
    status: 503,
    what: '{singleton} was not moved: {reason}.',
    remedy: 'Look at `holdfast cluster status` of the host that holds it; then try again.',
  },
  HF_CLUSTER_HOST_LIVES: {
    status: 409,
    what: 'The host {host} is not forgotten: {reason}.',
    remedy: 'Stop it first, and wait until another host holds what it held.',
  },
  HF_CLUSTER_FORGET: {
    status: 503,
    what: 'The host {host} is forgotten here, and still listed by {others}, of which no answer came.',
    remedy: 'Run the same command on each of them when `holdfast cluster hosts` shows it as there.',
  },
  HF_CLUSTER_BRANCH: {
    status: 404,
    what: 'This host has no orphaned branch {number}.',
    remedy: 'See which there are with `holdfast cluster orphans`.',
  },
  HF_CLUSTER_NKEY_EXISTS: {
    status: 409,
    what: 'There is a file {file} already.',
    remedy: 'Name another one, or move it away if no host uses it.',
  },
  HF_CLUSTER_KEY: {
    status: 500,
    what: 'The key of the cluster in {file} cannot be read ({reason}).',
    remedy:
      'Copy it there from another host (mode 600), make the first with `openssl rand -out {file} 64`, or correct HOLDFAST_CLUSTER_KEY_FILE.',
  },
  HF_CLUSTER_ALONE: {
    status: 409,
    what: 'The instance on {dir} is alone: it is no host of a cluster.',
    remedy:
      'To make it a host, set HOLDFAST_NATS_URL and HOLDFAST_CLUSTER_KEY_FILE at its start (docs/guides/several-hosts.md).',
  },
  HF_CLUSTER_UNSET: {
    status: 400,
    what: 'Where the logs of all hosts are is not set ({reason}).',
    remedy:
      'Set HOLDFAST_NATS_URL and HOLDFAST_CLUSTER_KEY_FILE as the hosts have them, or use their configuration.',
  },
});

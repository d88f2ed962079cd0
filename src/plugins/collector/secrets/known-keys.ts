/** One of the secrets that the documents name. */
export interface KnownKey {
  readonly name: string;
  readonly of: 'stack' | 'gateway';
  readonly purpose: string;
  /** What follows when it is rotated. */
  readonly rotation: string;
  /** How, where Holdfast or a command does it. */
  readonly command?: string;
  readonly isVestigial?: true;
}

/** The keys of the stack's and the gateway's path in the secrets store (O25). */
export const KNOWN_KEYS: readonly KnownKey[] = [
  {
    name: 'admin_password',
    of: 'stack',
    purpose: 'admin of the columnar database',
    rotation: 'whoever logs in with it is refused until it has the new one: Holdfast, dashboards, the UI',
  },
  {
    name: 'docdb_admin_password',
    of: 'stack',
    purpose: 'admin of the document database',
    rotation: 'the UI answers 5xx until it has the new one',
  },
  {
    name: 'docdb_replicaset_keyfile',
    of: 'stack',
    purpose: "authentication among the document database's three members",
    rotation: 'members with different keys refuse one another: rotate all at once, with the UI down',
  },
  {
    name: 'ui_bootstrap_secret',
    of: 'stack',
    purpose: "signs the UI's sessions",
    rotation: 'signs everyone out of the UI once; the app is restarted by its restarter',
  },
  {
    name: 'ui_oidc_client_secret',
    of: 'stack',
    purpose: "the UI's client secret at the identity provider",
    rotation: 'nobody can log in to the UI until the identity provider has the same; its own code writes it',
  },
  {
    name: 'otel_ingest_api_key',
    of: 'stack',
    purpose: 'admits producers of telemetry (OTLP)',
    rotation:
      'producers with the old key are refused; it is made by the UI, or by Holdfast where it is the collector, and cannot be planted beforehand',
    command: 'holdfast stack rotate-ingest-key',
  },
  {
    name: 'otel_ingest_token',
    of: 'stack',
    purpose: 'vestigial: admits nobody; a secret-sync object refers to it and must not be without data',
    rotation: 'never rotate, empty or delete it',
    isVestigial: true,
  },
  {
    name: 'master_key',
    of: 'gateway',
    purpose: "the gateway's admin endpoints",
    rotation: 'scripts that mint or revoke keys are refused until they have it; virtual keys go on',
  },
  {
    name: 'claude_code_api_key',
    of: 'gateway',
    purpose: "the workstation's virtual key at the gateway",
    rotation: 'the workstation is refused until its clients have the new one',
    command: 'holdfast gateway keys rotate',
  },
];

const PLACEHOLDERS =
  /^(?:place-?holder|change[-_ ]?me|to-?do|tbd|dummy|example|xxx+|unset|none|null|replace[-_ ]?me)\b/i;

/** Whether a value was put there only for something to be there. */
export function isPlaceholder(value: string): boolean {
  return PLACEHOLDERS.test(value.trim()) || /^<.*>$/.test(value.trim()) || new Set(value.trim()).size < 3;
}

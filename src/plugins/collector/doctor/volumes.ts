/** What protects each volume of the stack and of the memory store (O29). */
export const VOLUMES = [
  {
    volume: 'columnar database',
    protection: "two replicas and the block volumes' daily backup; the backup orchestrator skips this class",
  },
  {
    volume: 'document database',
    protection:
      'three members, the orchestrator on its default schedule and the daily backup; no fsync hooks',
  },
  {
    volume: 'coordination keeper',
    protection: 'the orchestrator on its default schedule and the daily backup; no fsync hooks',
  },
  {
    volume: 'memory store (qdrant-data)',
    protection: 'its own snapshots at 02:30 (14 kept) and a volume copy at 04:00 (30 days)',
  },
] as const;

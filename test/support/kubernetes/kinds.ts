/** How the API names a kind. */
export interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

const row = (apiVersion: string, kind: string, plural: string, namespaced = true): Resource => ({
  apiVersion,
  kind,
  plural,
  namespaced,
});

export const RESOURCES: readonly Resource[] = [
  row('v1', 'Namespace', 'namespaces', false),
  row('v1', 'PersistentVolume', 'persistentvolumes', false),
  row('v1', 'PersistentVolumeClaim', 'persistentvolumeclaims'),
  row('v1', 'Pod', 'pods'),
  row('v1', 'Secret', 'secrets'),
  row('v1', 'Service', 'services'),
  row('v1', 'ConfigMap', 'configmaps'),
  row('v1', 'Event', 'events'),
  row('apps/v1', 'Deployment', 'deployments'),
  row('apps/v1', 'DaemonSet', 'daemonsets'),
  row('apps/v1', 'StatefulSet', 'statefulsets'),
  row('policy/v1', 'PodDisruptionBudget', 'poddisruptionbudgets'),
  row('snapshot.storage.k8s.io/v1', 'VolumeSnapshot', 'volumesnapshots'),
  row('batch/v1', 'Job', 'jobs'),
  row('batch/v1', 'CronJob', 'cronjobs'),
  row('external-secrets.io/v1', 'ExternalSecret', 'externalsecrets'),
  row('velero.io/v1', 'Backup', 'backups'),
  row('velero.io/v1', 'Restore', 'restores'),
  row('velero.io/v1', 'PodVolumeBackup', 'podvolumebackups'),
  row('velero.io/v2alpha1', 'DataUpload', 'datauploads'),
  row('longhorn.io/v1beta2', 'Volume', 'volumes'),
  row('longhorn.io/v1beta2', 'Replica', 'replicas'),
  row('longhorn.io/v1beta2', 'Backup', 'backups'),
  row('longhorn.io/v1beta2', 'BackupTarget', 'backuptargets'),
  row('longhorn.io/v1beta2', 'RecurringJob', 'recurringjobs'),
];

/** `/api`, `/apis` and the lists of resources, as clients read them before anything else. */
export function discovery(path: string): object | undefined {
  const versions = [...new Set(RESOURCES.map(({ apiVersion }) => apiVersion))];
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'] };
  if (path === '/apis') {
    const groups = versions
      .filter((version) => version.includes('/'))
      .map((groupVersion) => {
        const [name, version] = groupVersion.split('/');
        return { name, versions: [{ groupVersion, version }], preferredVersion: { groupVersion, version } };
      });
    return { kind: 'APIGroupList', apiVersion: 'v1', groups };
  }
  const groupVersion = path.replace(/^\/apis?\//, '');
  if (!versions.includes(groupVersion)) return undefined;
  const verbs = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];
  const resources = RESOURCES.filter(({ apiVersion }) => apiVersion === groupVersion).map(
    ({ plural, kind, namespaced }) => ({
      name: plural,
      singularName: kind.toLowerCase(),
      kind,
      namespaced,
      verbs,
    }),
  );
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources };
}

/** What the two throwaway pods are made of. */
export interface Throwaway {
  readonly namespace: string;
  /** Base of the monitor as the pods reach it. */
  readonly url: string;
  /** Of the scheduled job: parity means the same image. */
  readonly jobImage: string;
  /** One whose client keeps the bodies of all answers. */
  readonly captureImage: string;
}

/** Where the push token lies in the cluster. */
const TOKEN_SECRET = { name: 'clickstack-watchdog', key: 'token' } as const;

/**
 * The two pods of a recovery by hand: A sees what the job sees, B keeps the body. Neither has a service account's token,
 * and the push token is only ever a variable inside of them. Their pushes say down: an up would hide a sick stack.
 */
export function manifests({ namespace, url, jobImage, captureImage }: Throwaway): string {
  const address = (msg: string) =>
    `"${url.replace(/\/*$/, '')}/api/push/\${PUSH_TOKEN}?status=down&msg=${msg}&ping=0&probe=1"`;
  return [
    '# A, parity: the image and client of the job; status line and headers, no body.',
    pod('push-parity', namespace, jobImage, `exec wget -S -O - ${address('push-parity')}`),
    '---',
    '# B, body capture: a client that keeps the body of any answer. `msg` in it is the only place that says why.',
    pod('push-capture', namespace, captureImage, `exec curl -sS -i --max-time 20 ${address('push-capture')}`),
    '# kubectl apply -f -, then kubectl logs of each, then kubectl delete pod push-parity push-capture',
  ].join('\n');
}

function pod(name: string, namespace: string, image: string, script: string): string {
  const text = JSON.stringify; // a JSON string is a YAML string
  return `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
  namespace: ${text(namespace)}
spec:
  restartPolicy: Never
  activeDeadlineSeconds: 60
  automountServiceAccountToken: false
  dnsConfig:
    options:
      - name: ndots
        value: "1"
  containers:
    - name: push
      image: ${text(image)}
      command: ["/bin/sh", "-c"]
      args:
        - ${text(script)}
      env:
        - name: PUSH_TOKEN
          valueFrom:
            secretKeyRef:
              name: ${TOKEN_SECRET.name}
              key: ${TOKEN_SECRET.key}
      securityContext:
        allowPrivilegeEscalation: false
        capabilities:
          drop: ["ALL"]`;
}

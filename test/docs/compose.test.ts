import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { root } from "../../dev/nodered.js";

interface Service {
  build?: { dockerfile_inline: string };
  environment?: Record<string, string>;
  command?: string[];
  depends_on?: string[];
  stop_grace_period?: string;
  ports?: string[];
  volumes: string[];
}

interface Project {
  name: string;
  services: Record<string, Service>;
  volumes: Record<string, null>;
}

describe("docs/compose.yaml", () => {
  const load = (file: string) => parse(readFileSync(join(root, "docs", file), "utf8"), { merge: true }) as Project;
  const { services, volumes, name: project } = load("compose.yaml");
  const { peerDependencies, name } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const instances = Object.values(services).filter(({ build }) => build);

  it("is another project than the single instance, which uses the same port and names", () => {
    assert.notEqual(project, load("compose/single.yaml").name);
  });

  it("gives Node-RED time to close", () => {
    for (const { stop_grace_period } of instances) assert.equal(stop_grace_period, "30s");
  });

  it("runs two Node-RED instances, one Redis server and nothing else", () => {
    assert.deepEqual([Object.keys(services).length, instances.length], [3, 2]);
    assert.deepEqual(services.redis?.command, [
      ...["redis-server", "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"],
    ]);
  });

  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const pinned = (one: string) => `${one}@${lock.packages[`node_modules/${one}`].version}`;

  it("installs the package with the optional packages for Redis, in the versions that are tested", () => {
    for (const { build, environment, depends_on } of instances) {
      const [, installed = ""] = /^RUN npm install (.*)$/m.exec(build?.dockerfile_inline ?? "") ?? [];
      const packages = installed.split(" ").filter((word) => !word.startsWith("--"));
      assert.deepEqual(packages, [name, pinned("bullmq"), pinned("ioredis")]);
      for (const one of ["bullmq", "ioredis"]) assert.ok(peerDependencies[one], one);
      const { hostname, port } = new URL(environment?.SEO_QUEUE_URL ?? "");
      assert.ok(services[hostname] && depends_on?.includes(hostname));
      assert.equal(port, "6379");
    }
  });

  it("has the version of bullmq that every command to install it names", () => {
    const example = "examples/12 - More than one machine.json";
    const catalogs = readdirSync(join(root, "nodes/locales")).map((file) => `nodes/locales/${file}`);
    for (const file of ["docs/scaling.md", example, "src/audit/shared/driver.ts", ...catalogs]) {
      const versions = readFileSync(join(root, file), "utf8").match(/bullmq@\d[\w.]*/g) ?? [];
      assert.deepEqual([...new Set(versions)], [pinned("bullmq")], file);
    }
  });

  it("gives each its own volume, and listens only on this computer", () => {
    const used = Object.values(services).flatMap((service) => service.volumes.map((one) => one.split(":")[0]));
    assert.deepEqual(used.sort(), Object.keys(volumes).sort());
    const ports = instances.flatMap((service) => service.ports ?? []);
    assert.ok(ports.every((one) => one.startsWith("127.0.0.1:")));
    assert.equal(new Set(ports).size, 2);
  });
});

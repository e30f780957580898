import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';

type Service = {
  readonly image: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly ports: readonly string[];
  readonly volumes: readonly string[];
  readonly healthcheck: {
    readonly test: readonly string[];
    readonly interval: string;
    readonly timeout: string;
    readonly retries: number;
  };
};
type Compose = {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};

describe('ops/compose.yaml', () => {
  const text = readFileSync(new URL('../../../ops/compose.yaml', import.meta.url), 'utf8');
  // `parse` throws on duplicate keys and bad syntax, and warns about nothing silently.
  const compose = parse(text, { strict: true }) as Compose;
  const services = Object.entries(compose.services);

  it('says that it was not run, and has no version key', () => {
    expect(text.slice(0, text.indexOf('\nname:'))).to.match(/not run here/);
    expect(compose).not.to.have.property('version');
  });

  it('has the two servers that the service can use', () => {
    expect(Object.keys(compose.services)).to.deep.equal(['eventstore', 'kafka']);
  });

  for (const [name, service] of services) {
    describe(name, () => {
      it('pins its image', () => {
        expect(service.image).to.match(/^[a-z0-9./-]+:\d+\.\d+\.\d+$/);
      });

      it('is asked for its health on a port that it listens on', () => {
        const { test: command, interval, timeout, retries } = service.healthcheck;
        expect(command[0]).to.be.oneOf(['CMD', 'CMD-SHELL']);
        const port = /localhost:(\d+)/.exec(command.join(' '))?.[1];
        expect(service.ports.map((published) => published.split(':').at(-1))).to.include(port);
        expect([interval, timeout]).to.satisfy((times: string[]) =>
          times.every((time) => /^\d+s$/.test(time)),
        );
        expect(retries).to.be.greaterThan(3);
      });

      it('keeps its data in declared volumes and its ports on loopback', () => {
        expect(service.volumes).not.to.have.length(0);
        for (const volume of service.volumes)
          expect(compose.volumes).to.have.property(volume.split(':')[0] ?? '');
        for (const port of service.ports) expect(port).to.match(/^127\.0\.0\.1:/);
      });

      it('gives settings as texts, so that no YAML rule changes them', () => {
        for (const value of Object.values(service.environment)) expect(value).to.be.a('string');
      });
    });
  }

  it('declares no volume that nobody uses', () => {
    const used = services.flatMap(([, service]) => service.volumes.map((volume) => volume.split(':')[0]));
    expect(used).to.have.members(Object.keys(compose.volumes));
  });

  it('advertises one Kafka listener for this machine and one for other containers', () => {
    const { environment = {} } = compose.services['kafka'] ?? {};
    const names = (text_: string | undefined): string[] =>
      (text_ ?? '').split(',').map((listener) => listener.split(':')[0] ?? '');
    expect(names(environment['KAFKA_ADVERTISED_LISTENERS'])).to.deep.equal(['HOST', 'INTERNAL']);
    expect(names(environment['KAFKA_LISTENERS'])).to.have.members(
      names(environment['KAFKA_LISTENER_SECURITY_PROTOCOL_MAP']),
    );
    expect(environment['KAFKA_CONTROLLER_QUORUM_VOTERS']).to.equal(
      `${environment['KAFKA_NODE_ID']}@kafka:9094`,
    );
  });
});

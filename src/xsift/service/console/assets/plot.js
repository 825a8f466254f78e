// Small plots: one or two lines over the last minutes, with what they are now.

import { fill, h, svg } from './dom.js';

const WIDTH = 300, HEIGHT = 64, TOP = 4;

export class Plot {
  /** `lines`: [name in the samples, what people call it]; `show` writes a value. */
  constructor(title, lines, show) {
    Object.assign(this, { title, lines, show });
    this.paths = lines.map((_, place) => svg('path', { class: `line line-${place}`, fill: 'none' }));
    this.area = svg('path', { class: 'area' });
    this.picture = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img' }, this.area, this.paths);
    this.values = h('div', { class: 'values' });
    this.element = h('figure', { class: 'card plot' }, h('figcaption', {}, title), this.values, this.picture);
  }

  draw(samples) {
    const at = samples.at || [];
    const series = this.lines.map(([name]) => samples[name] || []);
    const highest = Math.max(...series.flatMap((values) => values.filter((value) => value !== null && value !== undefined)), 0);
    const begin = at[0] || 0, span = Math.max(at[at.length - 1] - begin, 60) || 60;
    const x = (place) => ((at[place] - begin) / span) * WIDTH;
    const y = (value) => HEIGHT - (highest ? (value / highest) * (HEIGHT - TOP) : 0);
    series.forEach((values, line) => {
      const points = [];
      let pen = 'M';
      values.forEach((value, place) => {
        if (value === null || value === undefined) { pen = 'M'; return; }
        points.push(`${pen}${x(place).toFixed(1)} ${y(value).toFixed(1)}${pen === 'M' ? 'h.01' : ''}`);
        pen = 'L';
      });
      this.paths[line].setAttribute('d', points.join(''));
      if (line === 0 && points.length > 1 && !values.includes(null)) {
        this.area.setAttribute('d', `${points.join('')}L${x(values.length - 1).toFixed(1)} ${HEIGHT}L0 ${HEIGHT}Z`);
      }
    });
    const now = series.map((values) => [...values].reverse().find((value) => value !== null && value !== undefined));
    fill(this.values, this.lines.map(([, text], line) => h('span', { class: `value-${line}` }, h('b', {}, now[line] === undefined ? '–' : this.show(now[line])), text ? ` ${text}` : '')));
    const told = this.lines.map(([, text], line) => `${text} now ${now[line] === undefined ? 'nothing' : this.show(now[line])}`).join(', ');
    this.picture.setAttribute('aria-label', `${this.title}: ${told}, highest ${this.show(highest)}`);
  }
}

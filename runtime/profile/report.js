'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const SVG = 'http://www.w3.org/2000/svg';

// All text is added as text nodes: names come from models and may have any characters.
function el(tag, attrs = {}, ...children) {
  const svg = ['svg', 'g', 'rect', 'path', 'line', 'text', 'circle', 'polyline'].includes(tag);
  const node = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attrs)) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

const nbsp = '\u202f';
const group = n => Math.round(n).toString().replace(/\B(?=(\d{3})+(?!\d))/g, nbsp);
function scaled(n, base = 1000, units = ['', 'k', 'M', 'G', 'T']) {
  let i = 0;
  while (Math.abs(n) >= base && i < units.length - 1) { n /= base; ++i; }
  return [n >= 100 || (i === 0 && Number.isInteger(n)) ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2), units[i]];
}
const bytes = n => { const [v, u] = scaled(n, 1024, ['B', 'KiB', 'MiB', 'GiB']); return `${v.replace(/\.0+$/, '')}${nbsp}${u}`; };
const short = n => { const [v, u] = scaled(n); return u ? `${v}${nbsp}${u}` : v; };
const percent = x => `${(100 * x).toFixed(1)}${nbsp}%`;
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The tooltip: first line bold, further lines soft, code last.
function tip(event, title, lines = [], code = '') {
  const box = $('tip');
  box.replaceChildren(el('b', {}, title), ...lines.map(line => el('span', {}, line)), ...(code ? [el('code', {}, code)] : []));
  box.hidden = false;
  const r = box.getBoundingClientRect();
  const x = event.clientX + 14 + r.width > innerWidth ? event.clientX - r.width - 10 : event.clientX + 14;
  const y = event.clientY + 14 + r.height > innerHeight ? event.clientY - r.height - 10 : event.clientY + 14;
  box.style.left = `${Math.max(4, x)}px`;
  box.style.top = `${Math.max(4, y)}px`;
}
const untip = () => { $('tip').hidden = true; };

// A layer is highlighted in all views at once.
const views = new Map();  // by layer: its nodes
let highlighted = null;
function register(layer, node) {
  if (!views.has(layer)) views.set(layer, []);
  views.get(layer).push(node);
}
function highlight(layer) {
  if (layer === highlighted) return;
  for (const node of views.get(highlighted) ?? []) node.classList.remove('on');
  for (const node of views.get(layer) ?? []) node.classList.add('on');
  highlighted = layer;
  timeline?.draw();
}
let timeline = null;

// Of several accelerators, the name of one; nothing where there is one.
const accelerators = data.accelerators;
const which = accelerator => accelerators.length > 1 ? ` · ${accelerator.name}` : '';
const isAccelerator = node => accelerators.some(accelerator => accelerator.name === node.device);

function summary() {
  const { run } = data;
  const parts = data.devices.map(device => device.uri + (device.simulated ? device.cycle_accurate ? ' (simulated, cycle-accurate)' : ' (simulated, cycles estimated)' : ''));
  for (const { config } of accelerators) parts.push(`configuration ${config.name}: 1×${config.block_in}×${config.block_out}, ${config.axi_bytes * 8}-bit memory port`);
  $('subtitle').textContent = parts.join(' · ');
  const tile = (label, value, unit, hint) => $('tiles').append(el('div', { class: 'tile' }, el('div', { class: 'label' }, label),
    el('div', { class: 'value' }, value, ...(unit ? [el('small', {}, unit)] : [])), el('div', { class: 'hint' }, hint)));
  const head = data.facts.filter(([key]) => /accuracy/i.test(key)).slice(0, 3);
  for (const [key, value] of head) tile(key, value, '', '');
  for (const accelerator of accelerators.filter(a => a.launches > 0)) {
    const { config, cycles } = accelerator, clock = accelerator.device?.clock_hz || 0;
    tile(`Cycles per run${which(accelerator)}`, group(cycles), '', clock ? `${(cycles / clock * 1e3).toFixed(2)} ms at ${(clock / 1e6).toFixed(0)} MHz` : 'on the accelerator');
    tile(`Utilization${which(accelerator)}`, (100 * accelerator.utilization).toFixed(1), '%', `${short(accelerator.macs)} MACs, ${config.macs_per_cycle} a cycle at most`);
  }
  if (run.launches > 0) {
    const traffic = run.read_bytes + run.write_bytes;
    const [value, unit] = scaled(traffic, 1024, ['B', 'KiB', 'MiB', 'GiB']);
    tile('DRAM traffic per run', value, unit, `${bytes(run.read_bytes)} read, ${bytes(run.write_bytes)} written; whole beats, instructions included`);
  }
  tile('Runs', group(run.runs), '', `${data.graph.nodes.filter(isAccelerator).length} operators on ${accelerators.length > 1 ? 'accelerators' : 'the accelerator'}, ${data.graph.nodes.filter(n => n.device === 'cpu').length} on the CPU`);
  const facts = [...data.facts.filter(fact => !head.includes(fact)), ...data.model];
  for (const accelerator of accelerators) facts.push([`Scratchpads${which(accelerator)}`, accelerator.config.buffers.map(([name, size]) => `${name}\u00a0${bytes(size)}`).join(', ')]);
  if (!facts.length) $('facts-card').remove();
  $('facts').append(...facts.map(([key, value]) => el('div', {}, el('dt', {}, key), el('dd', {}, value))));
}

const kind = node => isAccelerator(node) ? 'accel' : node.device === 'cpu' ? 'cpu' : 'io';
function legend(id, entries) {
  $(id).append(...entries.map(([color, label]) => { const i = el('i'); i.style.background = color; return el('span', {}, i, label); }));
}

// Ranks nodes by the longest path from the inputs, and orders a row by the mean of the neighbours above (then below).
function layout(nodes, edges) {
  const into = nodes.map(() => []), out = nodes.map(() => []);
  for (const [a, b] of edges) if (a !== b) { into[b].push(a); out[a].push(b); }
  const rank = nodes.map(() => 0), left = into.map(list => list.length), queue = [];
  left.forEach((n, i) => { if (n === 0) queue.push(i); });
  for (let q = 0; q < queue.length; ++q) {
    for (const next of out[queue[q]]) {
      rank[next] = Math.max(rank[next], rank[queue[q]] + 1);
      if (--left[next] === 0) queue.push(next);
    }
  }
  // Sources are right above their first user, not all at the top.
  nodes.forEach((_, i) => { if (!into[i].length && out[i].length) rank[i] = Math.min(...out[i].map(o => rank[o])) - 1; });
  const rows = [];
  nodes.forEach((_, i) => { (rows[rank[i]] ??= []).push(i); });
  // An edge over several rows keeps a free column in each, so that it runs beside the boxes and does not cross them.
  const lanes = edges.filter(([a, b]) => a !== b).map(([a, b]) => ({ a, b, via: [] }));
  const items = rows.map(row => (row ?? []).map(i => ({ node: i })));
  for (const lane of lanes) {
    for (let r = rank[lane.a] + 1; r < rank[lane.b]; ++r) { const item = { lane }; lane.via.push(item); items[r].push(item); }
  }
  const at = nodes.map(() => 0);
  const assignColumns = row => row.forEach((item, i) => { item.x = i - (row.length - 1) / 2; if (item.node !== undefined) at[item.node] = item.x; });
  items.forEach(assignColumns);
  const mean = list => list.length ? list.reduce((a, b) => a + b, 0) / list.length : 0;
  for (let pass = 0; pass < 6; ++pass) {
    const down = pass % 2 === 0;
    (down ? items : [...items].reverse()).forEach(row => {
      for (const item of row) {
        if (item.node !== undefined) item.key = mean((down ? into : out)[item.node].map(n => at[n]));
        else { const i = item.lane.via.indexOf(item); item.key = down ? (i ? item.lane.via[i - 1].x : at[item.lane.a]) + 0.3 : item.lane.via[i + 1]?.x ?? at[item.lane.b]; }
      }
      row.sort((a, b) => a.key - b.key);
      assignColumns(row);
    });
  }
  return { items, lanes, at, rank };
}

// What the node costs on each target, and what the model would cost if it alone were there.
function prices(node) {
  const time = s => { const [v, u] = scaled(s * 1e6, 1000, ['µs', 'ms', 's']); return `${v}${nbsp}${u}`; };
  const change = c => c === null ? 'excluded by a pin' : c === 0 ? 'where it is' : `total ${c > 0 ? '+' : '−'}${time(Math.abs(c))}`;
  return (node.prices ?? []).map(p => `${p.target}: ${time(p.seconds)} (${p.source}), ${change(p.change)}`);
}

function drawGraph() {
  const edges = data.graph.edges, nodes = data.graph.nodes.map(n => ({ ...n, op: n.op.replace(/^accel\./, '') }));
  if (!nodes.length) { $('graph-card').remove(); document.querySelector('.columns').style.gridTemplateColumns = 'minmax(0,1fr)'; return; }
  legend('graph-legend', [['var(--accel)', 'accelerator'], ['var(--cpu)', 'CPU'], ['var(--io)', 'input, output']]);
  const { items, lanes, at, rank } = layout(nodes, edges);
  const W = 182, H = 44, GX = 20, GY = 26, LANE = 26;
  // Columns: boxes are wide, lanes of passing edges narrow.
  let width = 0;
  const y = r => 6 + r * (H + GY);
  for (const row of items) {
    let x = 0;
    for (const item of row) { const w = item.node !== undefined ? W : LANE; item.left = x; item.w = w; x += w + GX; }
    row.width = x - GX;
    width = Math.max(width, row.width);
  }
  const center = {};
  items.forEach(row => row.forEach(item => {
    item.cx = item.left + item.w / 2 + (width - row.width) / 2;
    if (item.node !== undefined) center[item.node] = item.cx;
  }));
  const total = y(items.length) + 6 - GY;
  const svg = el('svg', { width: width + 12, height: total, viewBox: `-6 0 ${width + 12} ${total}`, role: 'img', 'aria-label': 'Graph of the model' });
  svg.style.display = 'block'; svg.style.margin = '0 auto'; svg.style.maxWidth = 'none';
  for (const { a, b, via } of lanes) {
    const points = [[center[a], y(rank[a]) + H], ...via.flatMap(item => { const r = items.findIndex(row => row.includes(item)); return [[item.cx, y(r)], [item.cx, y(r) + H]]; }), [center[b], y(rank[b])]];
    let d = `M${points[0][0]},${points[0][1]}`;
    for (let i = 1; i < points.length; ++i) {
      const [x0, y0] = points[i - 1], [x1, y1] = points[i], m = (y0 + y1) / 2;
      d += x0 === x1 ? `L${x1},${y1}` : `C${x0},${m} ${x1},${m} ${x1},${y1}`;
    }
    const [x, yy] = points[points.length - 1];
    svg.append(el('path', { class: 'edge', d }), el('path', { d: `M${x - 3.5},${yy - 6}L${x},${yy}L${x + 3.5},${yy - 6}`, class: 'edge' }));
  }
  const cost = new Map(data.layers.map(l => [l.name, l])), cpu = new Map(data.cpu.map(c => [c.layer, c]));
  nodes.forEach((node, i) => {
    const x = center[i] - W / 2, top = y(rank[i]);
    const fit = (text, n) => text.length > n ? text.slice(0, n - 1) + '…' : text;
    const tail = (text, n) => text.length > n ? '…' + text.slice(1 - n) : text;
    const g = el('g', { class: `node ${kind(node)}` },
      el('rect', { x, y: top, width: W, height: H, rx: 8 }),
      el('text', { x: x + 11, y: top + 18, class: 'strong' }, fit(node.op || node.name, 22)),
      ...(node.op && node.op !== node.name && node.op.length < 15 ? [el('text', { x: x + W - 10, y: top + 18, class: 'faint', 'text-anchor': 'end' }, tail(node.name, 23 - node.op.length))] : []),
      el('text', { x: x + 11, y: top + 34, class: 'soft' }, fit(node.detail || node.name, 30)));
    const lines = [node.op === node.name ? '' : node.op, node.detail, isAccelerator(node) ? accelerators.length > 1 ? `on ${node.device}` : 'on the accelerator' : node.device === 'cpu' ? 'on the CPU' : ''];
    const c = cost.get(node.name);
    if (c) lines.push(`${group(c.cycles)} cycles, ${short(c.macs)} MACs, ${percent(c.utilization)} utilization`);
    if (cpu.has(node.name)) lines.push(`${cpu.get(node.name).us.toFixed(1)} µs`);
    lines.push(...prices(node));
    g.addEventListener('mousemove', event => { tip(event, node.name, lines.filter(Boolean)); highlight(node.name); });
    g.addEventListener('mouseleave', () => { untip(); highlight(null); });
    register(node.name, g);
    svg.append(g);
  });
  $('graph').append(svg);
}

const peak = layer => accelerators[layer.accelerator].config.macs_per_cycle;

function drawLayers() {
  if (!data.layers.length) { $('layers-card').remove(); return; }
  const most = Math.max(...data.layers.map(l => l.cycles), 1);
  const head = el('tr', {}, ...['Layer', 'Cycles', 'MACs', 'Utilization', 'DRAM'].map((t, i) => el('th', i ? {} : {}, t)));
  head.insertBefore(el('th', { class: 'bar' }, 'solid: what its MACs need at the roof'), head.children[1]);
  $('layers').append(el('thead', {}, head));
  const body = el('tbody');
  for (const l of data.layers) {
    const need = el('b'), fill = el('i', { class: 'fill' }, need);
    fill.style.width = `${100 * l.cycles / most}%`;
    need.style.width = `${Math.min(100, 100 * l.utilization)}%`;
    const row = el('tr', {},
      el('td', {}, el('span', { class: 'name', title: l.name }, l.name), el('span', { class: 'op' }, l.op.replace(/^accel\./, '') + which(accelerators[l.accelerator]))),
      el('td', { class: 'bar' }, el('span', { class: 'track' }, fill)), el('td', {}, group(l.cycles)), el('td', {}, short(l.macs)),
      el('td', {}, percent(l.utilization)), el('td', {}, bytes(l.read + l.write)));
    row.addEventListener('mouseenter', () => highlight(l.name));
    row.addEventListener('mouseleave', () => highlight(null));
    register(l.name, row);
    body.append(row);
  }
  const sum = key => data.layers.reduce((a, l) => a + l[key], 0);
  const cycles = sum('cycles');
  body.append(el('tr', { class: 'total' }, el('td', {}, 'All layers'), el('td', { class: 'bar' }), el('td', {}, group(cycles)), el('td', {}, short(sum('macs'))),
    el('td', {}, percent(sum('macs') / (data.layers.reduce((a, l) => a + l.cycles * peak(l), 0) || 1))), el('td', {}, bytes(sum('read') + sum('write')))));
  $('layers').append(body);
}

function drawRoofline() {
  const points = data.layers.filter(l => l.macs > 0 && l.cycles > 0 && l.read + l.write > 0)
    .map(l => ({ ...l, x: l.macs / Math.max(l.read, l.write), y: l.macs / l.cycles }));
  if (!points.length) { $('roofline-card').remove(); return; }
  const roofs = accelerators.map(a => ({ name: which(a), peak: a.config.macs_per_cycle, slope: a.config.axi_bytes, knee: a.config.macs_per_cycle / a.config.axi_bytes }));
  const knees = roofs.map(r => r.knee), highest = Math.max(...roofs.map(r => r.peak));
  const low = Math.min(...points.map(p => p.x / 1.6), Math.min(...knees) / 6), high = Math.max(...points.map(p => p.x), ...knees) * 2.5;
  const bottom = Math.min(...points.map(p => p.y), ...roofs.map(r => low * r.slope)) / 1.5, top = highest * 1.7;
  const W = 860, H = 330, L = 52, R = 18, T = 12, B = 40;
  const log = (v, a, b) => Math.log(v / a) / Math.log(b / a);
  const X = v => L + (W - L - R) * log(v, low, high), Y = v => H - B - (H - T - B) * log(v, bottom, top);
  const svg = el('svg', { viewBox: `0 0 ${W} ${H}`, width: '100%', role: 'img', 'aria-label': 'Roofline' });
  const ticks = (a, b) => { const list = []; for (let p = Math.ceil(Math.log2(a)); p <= Math.log2(b); ++p) list.push(2 ** p); const step = Math.ceil(list.length / 9); return list.filter((_, i) => i % step === 0); };
  const label = v => v >= 1 ? group(v) : `1/${Math.round(1 / v)}`;
  for (const v of ticks(low, high)) svg.append(el('line', { class: 'grid', x1: X(v), x2: X(v), y1: T, y2: H - B }), el('text', { class: 'faint', x: X(v), y: H - B + 16, 'text-anchor': 'middle' }, label(v)));
  for (const v of ticks(bottom, top)) svg.append(el('line', { class: 'grid', x1: L, x2: W - R, y1: Y(v), y2: Y(v) }), el('text', { class: 'faint', x: L - 8, y: Y(v) + 4, 'text-anchor': 'end' }, label(v)));
  svg.append(el('text', { class: 'soft', x: (L + W - R) / 2, y: H - 6, 'text-anchor': 'middle' }, 'MACs per DRAM byte'),
    el('text', { class: 'soft', transform: `translate(13 ${(T + H - B) / 2}) rotate(-90)`, 'text-anchor': 'middle' }, 'MACs per cycle'));
  const halo = node => { node.style.paintOrder = 'stroke'; node.style.stroke = 'var(--card)'; node.style.strokeWidth = '4px'; return node; };
  for (const { name, peak, slope, knee } of roofs) {
    svg.append(el('path', { class: 'roof', d: `M${X(low)},${Y(low * slope)}L${X(knee)},${Y(peak)}L${X(high)},${Y(peak)}` }));
    svg.append(halo(el('text', { class: 'soft', x: X(high) - 4, y: Y(peak) - 7, 'text-anchor': 'end' }, `${peak} MACs a cycle${name}`)));
    const sx = Math.sqrt(low * knee), angle = Math.atan2(Y(knee * slope) - Y(low * slope), X(knee) - X(low)) * 180 / Math.PI;
    svg.append(halo(el('text', { class: 'soft', transform: `translate(${X(sx) - 5} ${Y(sx * slope) - 7}) rotate(${angle})`, 'text-anchor': 'middle' }, `${slope} bytes a cycle`)));
  }
  const named = [...points].sort((a, b) => b.cycles - a.cycles);
  const most = named[0].cycles, radius = p => 4 + 5 * Math.sqrt(p.cycles / most);
  const labels = [], boxes = points.map(p => ({ x0: X(p.x) - radius(p), y0: Y(p.y) - radius(p), w: 2 * radius(p), h: 2 * radius(p) }));
  const free = box => boxes.every(b => box.x0 + box.w < b.x0 || b.x0 + b.w < box.x0 || box.y0 + box.h < b.y0 || b.y0 + b.h < box.y0);
  for (const p of named) {
    const r = radius(p);
    const dot = el('circle', { class: 'dot', cx: X(p.x), cy: Y(p.y), r });
    dot.addEventListener('mousemove', event => { tip(event, p.name, [p.op, `${p.y.toFixed(1)} MACs a cycle, ${p.x.toFixed(1)} MACs a byte`, `${(100 * p.y / Math.min(peak(p), roofs[p.accelerator].slope * p.x)).toFixed(0)} % of its roof, ${group(p.cycles)} cycles`]); highlight(p.name); });
    dot.addEventListener('mouseleave', () => { untip(); highlight(null); });
    register(p.name, dot);
    svg.append(dot);
    // A label is beside, above or below its dot, where it overlaps neither a dot nor a label.
    const w = 6.4 * p.name.length, x = X(p.x), y = Y(p.y);
    const box = [[x + r + 5, y - 8], [x - r - 5 - w, y - 8], [x - w / 2, y + r + 3], [x - w / 2, y - r - 19]]
      .map(([x0, y0]) => ({ x0, y0, w, h: 16 })).find(b => b.x0 > L && b.x0 + w < W - R && b.y0 + 16 < H - B && b.y0 > Y(highest) && free(b));
    if (box && labels.length < 12) {
      boxes.push(box);
      labels.push(halo(el('text', { class: 'soft', x: box.x0, y: box.y0 + 12 }, p.name)));
    }
  }
  svg.append(...labels);
  $('roofline').append(svg, el('p', { class: 'note' }, 'A dot is a layer; its area grows with its cycles.'));
}

const KINDS = [['busy', '--accel'], ['waits for tokens', '--tokens'], ['waits for memory', '--memory']];
const ENGINES = { ldi: 'LDI inputs', ldw: 'LDW weights', ldm: 'LDM parameters', gemm: 'GEMM', dw: 'DW depthwise', rq: 'RQ requantize', st: 'ST store' };
class Timeline {
  constructor(canvas) {
    this.canvas = canvas;
    canvas.addEventListener('wheel', e => { e.preventDefault(); this.zoom(Math.exp(e.deltaY * 0.0015), this.cycle(e)); }, { passive: false });
    canvas.addEventListener('pointerdown', e => { this.drag = { x: e.clientX, begin: this.begin }; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener('pointerup', () => { this.drag = null; });
    canvas.addEventListener('pointermove', e => this.move(e));
    canvas.addEventListener('pointerleave', () => { untip(); highlight(null); });
    canvas.addEventListener('keydown', e => {
      const step = (this.end - this.begin) / 8, keys = { ArrowLeft: () => this.pan(-step), ArrowRight: () => this.pan(step), '+': () => this.zoom(0.7), '-': () => this.zoom(1.4), Home: () => this.showAll() };
      if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
    });
    new ResizeObserver(() => this.draw()).observe(canvas);
  }
  show(launch) {
    this.launch = launch;
    this.rows = launch.engines.map(([name, busy, stall], i) => ({ name, busy, stall, i, list: [] }));
    const v = launch.intervals;
    for (let i = 0; i < v.length; i += 5) this.rows[v[i]].list.push({ kind: v[i + 1], at: v[i + 2], begin: v[i + 3], end: v[i + 4] });
    this.rows = this.rows.filter(r => r.list.length);
    for (const row of this.rows) row.list.sort((a, b) => a.begin - b.begin);
    this.last = Math.max(launch.cycles, ...this.rows.map(r => r.list.reduce((m, i) => Math.max(m, i.end), 0)));
    this.canvas.style.height = `${34 + this.rows.length * 42}px`;
    this.showAll();
  }
  showAll() { this.begin = 0; this.end = this.last; this.draw(); }
  pan(by) { const w = this.end - this.begin; this.begin = Math.max(0, Math.min(this.last - w, this.begin + by)); this.end = this.begin + w; this.draw(); }
  zoom(factor, around = (this.begin + this.end) / 2) {
    const w = Math.max(20, Math.min(this.last, (this.end - this.begin) * factor)), share = (around - this.begin) / (this.end - this.begin);
    this.begin = Math.max(0, Math.min(this.last - w, around - w * share)); this.end = this.begin + w; this.draw();
  }
  get plot() { return { left: 118, right: this.canvas.clientWidth - 4, top: 6, row: 42 }; }
  cycle(e) { const p = this.plot, r = this.canvas.getBoundingClientRect(); return this.begin + (e.clientX - r.left - p.left) / (p.right - p.left) * (this.end - this.begin); }
  layer(interval) { const note = this.launch.instructions[interval.at]; return note && note[0] >= 0 ? this.launch.layers[note[0]] : null; }
  move(e) {
    const p = this.plot, r = this.canvas.getBoundingClientRect();
    if (this.drag) {
      const w = this.end - this.begin, by = (this.drag.x - e.clientX) / (p.right - p.left) * w;
      this.begin = Math.max(0, Math.min(this.last - w, this.drag.begin + by)); this.end = this.begin + w; untip(); this.draw(); return;
    }
    const row = this.rows[Math.floor((e.clientY - r.top - p.top) / p.row)], c = this.cycle(e), slack = (this.end - this.begin) / (p.right - p.left) * 2;
    // Of the intervals under the pointer a busy one comes first: waits are the gaps around it.
    const hit = row?.list.filter(i => i.begin - slack <= c && c <= i.end + slack).sort((a, b) => (a.kind - b.kind) || (a.end - a.begin) - (b.end - b.begin))[0];
    if (!hit || e.clientX - r.left < p.left) {
      if (row && e.clientX - r.left < p.left) tip(e, ENGINES[row.name] ?? row.name, [`busy ${group(row.busy)} cycles`, `waits for tokens ${group(row.stall)} cycles`]); else untip();
      highlight(null); return;
    }
    const note = this.launch.instructions[hit.at], layer = this.layer(hit);
    tip(e, `${row.name.toUpperCase()} ${KINDS[hit.kind][0]}, ${group(hit.end - hit.begin)} cycles`, [`cycles ${group(hit.begin)} to ${group(hit.end)}`, layer ? `layer ${layer}` : '', note?.[1] ? `tile: ${note[1]}` : ''].filter(Boolean), note?.[2] ? `${hit.at}: ${note[2]}` : '');
    highlight(layer);
  }
  draw() {
    if (!this.launch) return;
    const ratio = devicePixelRatio || 1, w = this.canvas.clientWidth, h = this.canvas.clientHeight;
    this.canvas.width = w * ratio; this.canvas.height = h * ratio;
    const g = this.canvas.getContext('2d'), p = this.plot, X = c => p.left + (c - this.begin) / (this.end - this.begin) * (p.right - p.left);
    g.scale(ratio, ratio);
    g.font = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
    const colors = KINDS.map(([, name]) => css(name)), ink = css('--ink'), soft = css('--soft'), faint = css('--faint'), line = css('--line'), track = css('--track'), card = css('--card');
    const bottom = p.top + this.rows.length * p.row;
    const rough = (this.end - this.begin) / Math.max(3, (p.right - p.left) / 110), power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max(1, [1, 2, 5, 10].map(k => k * power).find(k => k >= rough));
    g.textAlign = 'center';
    for (let c = Math.ceil(this.begin / step) * step; c <= this.end; c += step) {
      g.fillStyle = line; g.fillRect(Math.round(X(c)), p.top, 1, bottom - p.top);
      g.fillStyle = faint; g.fillText(group(c), Math.min(p.right - 24, X(c)), bottom + 17);
    }
    for (const [k, row] of this.rows.entries()) {
      const y = p.top + k * p.row + 8, height = p.row - 16;
      g.textAlign = 'left'; g.fillStyle = ink; g.fillText(ENGINES[row.name] ?? row.name, 0, y + 11);
      g.fillStyle = faint; g.fillText(`busy ${(100 * row.busy / Math.max(1, this.launch.cycles)).toFixed(0)}${nbsp}%`, 0, y + 26);
      g.fillStyle = track; g.fillRect(p.left, y, p.right - p.left, height);
      g.save(); g.beginPath(); g.rect(p.left, y - 2, p.right - p.left, height + 4); g.clip();
      // Waits are low and work has the full height, so that work stands out. An interval is at least a pixel wide.
      for (const pass of [1, 2, 0]) for (const i of row.list) {
        if (i.kind !== pass || i.end < this.begin || i.begin > this.end) continue;
        const x0 = X(i.begin), x1 = Math.max(X(i.end), x0 + 0.6), dim = highlighted && this.layer(i) !== highlighted;
        g.globalAlpha = dim ? 0.28 : 1;
        g.fillStyle = colors[pass];
        const gap = x1 - x0 > 5 ? 1 : 0;
        if (pass === 0) g.fillRect(x0, y, x1 - x0 - gap, height); else g.fillRect(x0, y + height - 7, x1 - x0 - gap, 7);
        if (pass === 0 && x1 - x0 > 60) {
          const note = this.launch.instructions[i.at], text = note?.[1] || this.layer(i) || '';
          if (text) { const from = Math.max(x0, p.left); g.save(); g.beginPath(); g.rect(from, y, x1 - from - 4, height); g.clip(); g.fillStyle = card; g.fillText(text, from + 6, y + height / 2 + 4); g.restore(); }
        }
        g.globalAlpha = 1;
      }
      g.restore();
    }
  }
}

function drawTimeline() {
  if (!data.launches.length) { $('timeline-card').remove(); return; }
  legend('timeline-legend', KINDS.map(([label, color]) => [`var(${color})`, label]));
  timeline = new Timeline($('timeline'));
  data.launches.forEach((launch, i) => $('launch').append(el('option', { value: i }, `${launch.program}: ${group(launch.cycles)} cycles`)));
  if (data.launches.length < 2) $('launch').hidden = true;
  $('launch').addEventListener('change', () => timeline.show(data.launches[$('launch').value]));
  $('zoom-in').addEventListener('click', () => timeline.zoom(0.5));
  $('zoom-out').addEventListener('click', () => timeline.zoom(2));
  $('zoom-all').addEventListener('click', () => timeline.showAll());
  timeline.show(data.launches[0]);
}

function drawCpu() {
  if (!data.cpu.length) { $('cpu-card').remove(); return; }
  const body = el('tbody');
  for (const c of data.cpu) {
    const row = el('tr', {}, el('td', {}, c.layer || '—'), el('td', {}, c.kernel), el('td', {}, c.us.toFixed(1)));
    row.addEventListener('mouseenter', () => highlight(c.layer));
    row.addEventListener('mouseleave', () => highlight(null));
    register(c.layer, row);
    body.append(row);
  }
  $('cpu').append(el('thead', {}, el('tr', {}, el('th', {}, 'Operator'), el('th', {}, 'Kernel'), el('th', {}, 'µs per run'))), body);
}

$('theme').addEventListener('click', () => {
  const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  timeline?.draw();
});
if (location.hash === '#dark' || location.hash === '#light') document.documentElement.dataset.theme = location.hash.slice(1);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => timeline?.draw());
summary(); drawLayers(); drawRoofline(); drawCpu(); drawGraph(); drawTimeline();

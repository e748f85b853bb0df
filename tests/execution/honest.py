"""Honest solutions: name -> text. Each does what data-science code, or a library acting for it, may
do, and passes.

Before it stands ``result = value + [1]``, the right answer; a text may bind ``result`` again.
"""

PLAIN = {
    "nothing more": "",
    "output": "import sys\nprint('words', file=sys.stderr)",
    "a file in its folder": "with open('mem', 'w') as file:\n    file.write('x')\nassert open('mem').read() == 'x'",
    "a temporary file": "import tempfile\ntempfile.TemporaryFile().write(b'x')",
    "the frame of the caller": "import sys\ndef f():\n    return sys._getframe(1).f_lineno\nassert f()",
    "inspect": "import inspect\nassert inspect.stack() and inspect.signature(len)",
    "a traceback": """
import traceback
try:
    1 / 0
except ZeroDivisionError as error:
    assert traceback.format_exc() and error.__traceback__.tb_frame.f_lineno""",
    "a generator": "numbers = (x for x in value + [1])\nassert numbers.gi_frame\nresult = list(numbers)",
    "code of its own": "exec('def f():\\n    return 1')\nassert f() == 1 and eval('f()') == 1",
    "code in a file's name": "exec(compile('one = 1', __import__('copy').__file__, 'exec'))\nresult = value + [one]",
    "code as bytes": "import marshal\nresult = eval(marshal.loads(marshal.dumps(compile('value + [1]', '', 'eval'))))",
    "a function's attributes": "def f(x=1):\n    return x\nf.__defaults__ = (2,)\nassert f() == 2 and f.__code__.co_name",
    "a wrapper of a library's function": """
import copy
deepcopy = copy.deepcopy
copy.deepcopy = lambda *arguments, **options: deepcopy(*arguments, **options)""",
    "a module loaded anew": "import copy, importlib\nimportlib.reload(copy)",
    "an encoder of its own": "import json\njson.JSONEncoder = type('E', (json.JSONEncoder,), {'default': repr})",
    "names of builtins": "list, sum, all = [1], 2, None\nresult = value + list",
    "a builtin replaced": "import builtins\nbuiltins.print = lambda *words, **options: None",
    "a mock": "from unittest import mock\nwith mock.patch('time.time', return_value=1):\n    pass",
    "a cache": "import functools\n@functools.lru_cache\ndef f(x):\n    return x\nresult = value + [f(1)]",
    "copies": "import copy, pickle\nresult = pickle.loads(pickle.dumps(copy.deepcopy(result)))",
    "a dataclass": "import dataclasses\n@dataclasses.dataclass(order=True)\nclass P:\n    x: int\nassert P(1) == P(1) < P(2)",
    "a named tuple": "import collections\nassert collections.namedtuple('Pair', 'a b')(1, 2).b == 2",
    "the collector": """
import gc
gc.collect()
assert gc.get_referents(value) and gc.get_referrers(value) and gc.get_objects()
gc.callbacks.append(lambda phase, about: None)""",
    "a tracer": "import sys\nsys.settrace(lambda *event: None)",
    "a profile": "import cProfile\nassert cProfile.Profile().runcall(len, value) == len(value)",
    "memory traced": "import tracemalloc\ntracemalloc.start()\nassert tracemalloc.take_snapshot()",
    "a listener to the interpreter": "import sys\nsys.addaudithook(lambda event, arguments: None)",
    "the frames of all threads": "import sys\nassert sys._current_frames()",
    "threads that end": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    assert list(pool.map(abs, [-1, -2])) == [1, 2]""",
    "threads that stay": """
import threading, time
from concurrent.futures import ThreadPoolExecutor
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
threading.Timer(60, print).start()
assert ThreadPoolExecutor(1).submit(abs, -1).result() == 1""",
    "processes that end": """
import multiprocessing
with multiprocessing.Pool(2) as pool:
    assert pool.map(abs, [-1]) == [1]""",
    "another program": "import subprocess\nassert subprocess.check_output(['echo', 'x']) == b'x\\n'",
    "a fork": "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()",
    "a time limit of its own": "import signal\nsignal.signal(signal.SIGALRM, signal.default_int_handler)\nsignal.alarm(60)",
    "coroutines": "import asyncio\nasync def f():\n    return 1\nresult = value + [asyncio.run(f())]",
    "words at its end": "import atexit\natexit.register(print, 'end')",
    "machine code": "import ctypes\nassert ctypes.CDLL(None).abs(-1) == 1",
    "a warning": "import warnings\nwith warnings.catch_warnings():\n    warnings.simplefilter('error')\nwarnings.warn('!')",
    "random numbers": "import random\nrandom.seed(1)\nrandom.shuffle(value[:])",
}
# The same after an import
LIBRARIES = {
    "numpy's settings": (
        "import numpy as np",
        """
np.set_printoptions(precision=2)
np.seterr(all='raise')
np.random.seed(1)
result = (np.array(value + [0]) + (np.arange(len(value) + 1) == len(value))).tolist()""",
    ),
    "a wrapper of numpy's function": (
        "import numpy as np",
        """
import functools
np.load = functools.partial(np.load, allow_pickle=True)
np.save('kept.npy', np.array([{'one': 1}], dtype=object))
result = value + [np.load('kept.npy')[0]['one']]""",
    ),
    "an array of a class of its own": (
        "import numpy as np",
        """
class Array(np.ndarray):
    def __array_ufunc__(self, function, method, *inputs, **options):
        return getattr(function, method)(*map(np.asarray, inputs), **options)
result = np.add(np.array(value).view(Array), 0).tolist() + [1]""",
    ),
    "an array in machine code": (
        "import numpy as np",
        """
import ctypes
numbers = np.arange(3, dtype=np.int32)
assert numbers.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))[1] == 1""",
    ),
    "numpy's assertions": (
        "import numpy as np",
        "np.testing.assert_allclose(value, value)\nnp.vectorize(abs)([1])",
    ),
    "a query with local names": (
        "import pandas as pd",
        """
limit = 1
assert len(pd.DataFrame({"a": [1, 2]}).query("a > @limit").eval("b = a + @limit")) == 1""",
    ),
    "pandas' settings": (
        "import pandas as pd",
        """
pd.set_option('display.max_rows', 5)
with pd.option_context('mode.copy_on_write', True):
    pass
pd.DataFrame.total = lambda self: self.sum().sum()
result = value + [int(pd.DataFrame({'a': [1]}).total())]""",
    ),
    "a frame with a warning": (
        "import pandas as pd",
        """
frame = pd.DataFrame({'a': [1, 2], 'b': ['x', None]})
part = frame[frame['a'] > 1]
part['c'] = 3
frame['a'][0] = 5
frame['b'].fillna(0).groupby(frame['a']).apply(lambda group: group)""",
    ),
    "a frame of a class of its own": (
        "import pandas as pd",
        """
class Frame(pd.DataFrame):
    @property
    def _constructor(self):
        return Frame
assert type(Frame({'a': [1]}).copy()) is Frame""",
    ),
    "a table in HTML": (
        "import pandas as pd",
        "assert '<td' in pd.DataFrame({'a': [1]}).style.to_html()",
    ),
    "a pool of joblib": (
        "import joblib",
        """
def double(n):
    return 2 * n
assert joblib.Parallel(2)(joblib.delayed(double)(n) for n in (1, 2)) == [2, 4]
assert joblib.Parallel(2, 'threading')(joblib.delayed(double)(n) for n in (1, 2)) == [2, 4]""",
    ),
    "a search over parameters": (
        "from sklearn import linear_model, model_selection",
        """
search = model_selection.GridSearchCV(linear_model.Ridge(), {'alpha': [1, 2]}, cv=2)
assert search.fit([[0], [1], [2], [3]], [0, 1, 2, 3]).best_params_['alpha'] == 1""",
    ),
    "an estimator of its own": (
        "from sklearn import base, pipeline, preprocessing",
        """
class Same(base.BaseEstimator, base.TransformerMixin):
    def fit(self, x, y=None):
        return self
    def transform(self, x):
        return x
steps = pipeline.make_pipeline(Same(), preprocessing.FunctionTransformer(lambda x: x))
assert base.clone(steps).fit_transform([[1]]) == [[1]]""",
    ),
    "a function of scipy's solvers": (
        "from scipy import integrate, optimize",
        """
assert abs(optimize.minimize(lambda x: (x[0] - 1) ** 2, [0.]).x[0] - 1) < .01
assert integrate.solve_ivp(lambda t, y: -y, (0, 1), [1]).success""",
    ),
    "a model of torch": (
        "import torch",
        """
torch.manual_seed(1)
torch.set_grad_enabled(False)
class Net(torch.nn.Module):
    def forward(self, x):
        return x + 1
torch.fx.symbolic_trace(Net())
data = torch.utils.data.DataLoader(torch.zeros(2), batch_size=2)
result = value + [int(Net()(next(iter(data)))[0])]""",
    ),
}
# Drawings: name -> (what a solution draws, what a test says of it). The names plt, np, pd, sns are there
FIGURES = {
    "a colour bar": ("plt.imshow(np.eye(3))\nplt.colorbar()", "len(plt.gcf().axes) == 2"),
    "a colour bar's label": (
        "figure, axes = plt.subplots()\nfigure.colorbar(axes.imshow(np.eye(3)), label='heat')",
        "plt.gcf().axes[1].get_ylabel() == 'heat'",
    ),
    "polar axes": (
        "plt.subplot(projection='polar').plot([0, 1], [1, 2])",
        "plt.gca().name == 'polar'",
    ),
    "3D axes": (
        "plt.figure().add_subplot(projection='3d').view_init(azim=100, elev=50)",
        "plt.gca().azim == 100",
    ),
    "a surface": (
        "x, y = np.meshgrid([0, 1], [0, 1])\nplt.axes(projection='3d').plot_surface(x, y, x + y)",
        "len(plt.gca().collections) == 1",
    ),
    "bars by pandas": (
        "pd.DataFrame({'a': [1, 2]}, index=['x', 'y']).plot.bar(rot=45)",
        "[one.get_text() for one in plt.gca().get_xticklabels()] == ['x', 'y'] and plt.gca().get_xticklabels()[0].get_rotation() == 45",
    ),
    "dates by pandas": (
        "pd.Series([1, 2], pd.date_range('2000', periods=2)).plot(style='-o')",
        "plt.gca().lines[0].get_marker() == 'o'",
    ),
    "subplots by pandas": (
        "pd.DataFrame({'a': [1, 2], 'b': [3, 4]}).plot(subplots=True)",
        "len(plt.gcf().axes) == 2",
    ),
    "a second scale by pandas": (
        "pd.DataFrame({'a': [1, 2], 'b': [3, 4]}).plot(secondary_y='b')",
        "plt.gcf().axes[0].right_ax",
    ),
    "a heat map by seaborn": ("sns.heatmap(np.eye(2), annot=True)", "len(plt.gca().texts) == 4"),
    "a grid by seaborn": (
        "grid = sns.FacetGrid(pd.DataFrame({'a': [1, 2], 'b': [1, 2]}), col='a')\ngrid.map(plt.plot, 'b')",
        "len(plt.gcf().axes) == 2",
    ),
    "a joint plot by seaborn": (
        "sns.jointplot(x=[1, 2, 3], y=[1, 2, 4])",
        "len(plt.gcf().axes) == 3",
    ),
    "subplots that share": (
        "figure, axes = plt.subplots(2, sharex=True)\nfigure.suptitle('both')\naxes[0].set_xlim(0, 5)",
        "plt.gcf()._suptitle.get_text() == 'both' and plt.gca().get_xlim() == (0, 5)",
    ),
    "a formatter of its own": (
        "plt.plot([1, 2])\nplt.gca().xaxis.set_major_formatter(lambda x, at: f'{x} kg')",
        "plt.gca().xaxis.get_major_formatter()(1, 0) == '1 kg'",
    ),
    "a percent formatter": (
        "from matplotlib.ticker import PercentFormatter\nplt.plot([1, 2])\nplt.gca().yaxis.set_major_formatter(PercentFormatter(1))",
        "plt.gca().yaxis.get_major_formatter()(.5) == '50%'",
    ),
    "ticks": (
        "plt.plot([1, 2])\nplt.xticks([1], ['one'])\nplt.gca().tick_params(axis='y', length=9)",
        "plt.gca().get_xticklabels()[0].get_text() == 'one' and plt.gca().yaxis.majorTicks[0]._size == 9",
    ),
    "a hatch": ("plt.bar([1, 2], [3, 4], hatch='//')", "plt.gca().patches[0].get_hatch() == '//'"),
    "a legend outside": (
        "plt.plot([1, 2], label='rise')\nplt.legend(loc='upper left', bbox_to_anchor=(1, 1))",
        "plt.gca().get_legend().get_texts()[0].get_text() == 'rise'",
    ),
    "twin axes": (
        "plt.plot([1, 2])\nplt.twinx().plot([2, 1], '--')",
        "len(plt.gcf().axes) == 2 and plt.gca().lines[0].get_linestyle() == '--'",
    ),
    "an axis above": (
        "plt.plot([1, 2])\nplt.gca().secondary_xaxis('top', functions=(lambda x: 2 * x, lambda x: x / 2))",
        "len(plt.gca().child_axes) == 1",
    ),
    "two figures": (
        "plt.figure(1).gca().plot([1])\nplt.figure(2)\nplt.figure(1)",
        "plt.gcf().number == 1 and plt.get_fignums() == [1, 2]",
    ),
    "a style": (
        "plt.rcParams['lines.linewidth'] = 7\nplt.style.use('ggplot')\nplt.plot([1, 2])",
        "plt.rcParams['axes.grid']",
    ),
    "a picture in a folder": (
        "import os\nos.mkdir('out')\nplt.plot([1])\nplt.savefig('out/a.png')",
        "plt.imread('out/a.png').any()",
    ),
    "a function that reads the figure": (
        "figure, axes = plt.subplots()\naxes.describe = lambda: 'mine'\nfigure.canvas.mpl_connect('draw_event', print)",
        "plt.gca().describe() == 'mine'",
    ),
}

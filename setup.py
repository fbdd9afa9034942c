"""Packaging of tff_localupdate: metadata, extras, console scripts.

The ranges below say what the package needs; requirements.txt is the exact
set that is tested and the one to install. Resolving the ranges alone cannot
work: TFF 0.87.0 pins a jaxlib that the index no longer offers (see
CONTRIBUTING.md, "The lock").
"""

import pathlib

import setuptools

_README = pathlib.Path(__file__).with_name('README.md')

setuptools.setup(
    name='tff-localupdate',
    version='0.1.0',
    description=(
        'LocalUpdate and CEAL as TensorFlow Federated processes, with an'
        ' in-process runtime and the experiments of their papers.'
    ),
    long_description=(
        _README.read_text(encoding='utf-8') if _README.exists() else ''
    ),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    python_requires='>=3.9,<3.12',
    # Named one by one: a folder that is not listed here is not shipped.
    packages=[
        'tff_localupdate',
        'tff_localupdate.ceal',
        'tff_localupdate.compression',
        'tff_localupdate.execution',
        'tff_localupdate.local_update',
        'tff_localupdate.theory',
        'baselines',
        'baselines.algorithms',
        'baselines.figures',
        'baselines.regret',
        'baselines.results',
        'baselines.settings',
        'baselines.sweeps',
        'baselines.tasks',
        'baselines.training',
    ],
    package_data={'baselines': ['presets/*.flags']},
    install_requires=[
        'absl-py',
        'matplotlib',
        'numpy',
        'pandas',
        'scikit-learn',
        # TensorBoard 2.14 and TFF's dependencies import pkg_resources: gone
        # since 82, a warning at every start since 80.9.
        'setuptools<80.9',
        'tensorboard',
        'tensorflow==2.14.*',
        'tensorflow-federated==0.87.0',
        'tqdm',
    ],
    extras_require={
        # What tensorflow[and-cuda] 2.14.1 lists, without tensorrt 8.5.3.1,
        # which the index no longer offers and TensorFlow does not need.
        'gpu': [
            'nvidia-cublas-cu11==11.11.3.6',
            'nvidia-cuda-cupti-cu11==11.8.87',
            'nvidia-cuda-nvcc-cu11==11.8.89',
            'nvidia-cuda-runtime-cu11==11.8.89',
            'nvidia-cudnn-cu11==8.7.0.84',
            'nvidia-cufft-cu11==10.9.0.58',
            'nvidia-curand-cu11==10.3.0.86',
            'nvidia-cusolver-cu11==11.4.1.48',
            'nvidia-cusparse-cu11==11.7.5.86',
            'nvidia-nccl-cu11==2.16.5',
        ],
        # The optional parts, locked in requirements-extras.txt.
        # Later ones want NumPy 2, which TensorFlow 2.14 does not take.
        'tables': ['pyarrow<22'],
        'report': ['plotly'],
        'tune': ['optuna'],
        'cluster': ['dask', 'distributed'],
        'dev': [
            'hypothesis',
            'ipykernel',
            'ipython<8.23',  # Later ones want typing-extensions 4.6, unsaid.
            'nbclient',
            'nbformat',
            'pytest',
            'pytest-xdist',
            'ruff',
            'selenium',
        ],
    },
    entry_points={
        'console_scripts': [
            'localupdate-train = baselines.training.main:run',
            'localupdate-sweep = baselines.sweeps.main:run',
            'localupdate-figures = baselines.figures.main:run',
        ],
    },
)

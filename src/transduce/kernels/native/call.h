// A C++ function as a Python one: addresses and whole numbers come as int, real numbers as float, and the interpreter's
// lock is released while it runs. Its __doc__ has a letter for each argument: p address, i integer, u unsigned
// integer, f real number.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace transduce {

template <typename T>
T from_python(PyObject* object) {
    if constexpr (std::is_pointer_v<T>) {
        return static_cast<T>(PyLong_AsVoidPtr(object));
    } else if constexpr (std::is_floating_point_v<T>) {
        return static_cast<T>(PyFloat_AsDouble(object));
    } else if constexpr (std::is_unsigned_v<T>) {
        return static_cast<T>(PyLong_AsUnsignedLongLong(object));
    } else {
        return static_cast<T>(PyLong_AsLongLong(object));
    }
}

template <typename... Arguments, std::size_t... Places>
PyObject* call(void (*function)(Arguments...), PyObject* const* objects, std::index_sequence<Places...>) {
    std::tuple<Arguments...> arguments{from_python<Arguments>(objects[Places])...};
    if (PyErr_Occurred()) return nullptr;
    Py_BEGIN_ALLOW_THREADS;
    std::apply(function, arguments);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

template <typename... Arguments>
constexpr std::size_t arity(void (*)(Arguments...)) {
    return sizeof...(Arguments);
}

template <typename T>
constexpr char letter() {
    return std::is_pointer_v<T> ? 'p' : std::is_floating_point_v<T> ? 'f' : std::is_unsigned_v<T> ? 'u' : 'i';
}

template <typename... Arguments>
const char* letters(void (*)(Arguments...)) {
    static constexpr char text[] = {letter<Arguments>()..., 0};
    return text;
}

template <auto function>
PyObject* python_function(PyObject*, PyObject* const* objects, Py_ssize_t count) {
    constexpr auto expected = arity(function);
    if (count != static_cast<Py_ssize_t>(expected)) {
        return PyErr_Format(PyExc_TypeError, "expected %zu arguments, got %zd", expected, count);
    }
    return call(function, objects, std::make_index_sequence<expected>{});
}

template <auto function>
PyMethodDef method(const char* name) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&python_function<function>)),
            METH_FASTCALL, letters(function)};
}

}  // namespace transduce
